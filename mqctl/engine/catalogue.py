"""The topics a consumer wants: which exist, with how many partitions, since when."""

from collections.abc import Callable

from mqctl.core.assignment import Slot
from mqctl.core.errors import BadUsage
from mqctl.core.selection import Selection
from mqctl.engine import topics
from mqctl.engine.session import Session


class Catalogue:
    """Keeps the partition counts of the selected topics, None for missing ones.

    `refresh` looks again and returns the topics that are gone since the last look.
    What appears, vanishes or is waited for is told through `note`, once.
    """

    def __init__(
        self, session: Session, selection: Selection, note: Callable[[str], None]
    ) -> None:
        self._session = session
        self._selection = selection
        self._note = note
        self._counts: dict[str, int | None] = dict.fromkeys(selection.named())
        self._told: set[str] = set()
        self._matched = False

    def reselect(self, selection: Selection) -> None:
        """Want something else of the same topics from now on."""
        self._selection = selection

    @property
    def topics(self) -> list[str]:
        """Return the topics that exist."""
        return [t for t, count in self._counts.items() if count is not None]

    @property
    def missing(self) -> list[str]:
        """Return the topics wanted by name that do not exist."""
        return [t for t, count in self._counts.items() if count is None]

    def slots(self) -> list[Slot]:
        """Return all partitions this consumer could take."""
        return [
            slot
            for topic, count in self._counts.items()
            if count is not None
            for slot in self._selection.slots(topic, count)
        ]

    def check_partitions(self) -> None:
        """Raise BadUsage for a partition asked for that a topic does not have."""
        for topic, count in self._counts.items():
            for index in self._selection.partitions:
                if count is not None and not 0 <= index < count:
                    raise BadUsage(
                        f"partition {index} is out of range: topic {topic} has {count}"
                        f" (0 to {count - 1})",
                        topic=topic,
                        partition=index,
                    )

    def refresh(self) -> list[str]:
        """Look at the registry again; two trips with a pattern, else one."""
        self._match()
        keys = self._session.keys
        names = list(self._counts)
        replies = iter(
            self._session.wire.calls(
                [
                    command
                    for topic in names
                    for command in (
                        ("SISMEMBER", keys.registry, topic),
                        ("HGET", keys.meta(topic), "partitionCount"),
                    )
                ]
            )
        )
        gone = []
        for topic, there, stored in zip(names, replies, replies, strict=False):
            before = self._counts[topic]
            now = topics.counted(topic, stored) if there else None
            self._counts[topic] = now
            if before is not None and now is None:
                gone.append(topic)
            elif now is not None and topic in self._told:
                self._told.discard(topic)
                self._note(f"topic {topic} is there: {now} partitions")
        return gone

    def _match(self) -> None:
        if not self._selection.by_pattern:
            return
        found = self._selection.found(topics.names(self._session))
        new = [topic for topic in found if topic not in self._counts]
        self._counts.update(dict.fromkeys(new))
        if new:
            listed = ", ".join(new[:20]) + (" ..." if len(new) > 20 else "")  # noqa: PLR2004
            self._note(f"{'also ' if self._matched else ''}matched: {listed}")
        elif not self._matched:
            self._note("no topic matches yet; waiting for one")
        self._matched = True

    def say_waiting(self, gone: list[str]) -> None:
        """Tell once of each missing topic, just deleted or never there; a trip each."""
        for topic in self.missing:
            if topic in self._told:
                continue
            self._told.add(topic)
            if topic in gone:
                self._note(f"topic {topic} was deleted; waiting for it")
                continue
            near = topics.similar(self._session, topic)
            meant = f" (did you mean {near}?)" if near else ""
            self._note(f"topic {topic} does not exist yet; waiting for it{meant}")
