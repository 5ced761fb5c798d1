"""A group in the partitions of its topics: where it begins, is, and goes on."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mqctl.codecs import native
from mqctl.core import ids
from mqctl.core.assignment import Slot
from mqctl.core.errors import NotFound, WrongType
from mqctl.core.names import check_new_group
from mqctl.core.options import ConsumerOptions
from mqctl.core.positions import Position, parse_position
from mqctl.engine.session import Session
from mqctl.engine.standing import delivered
from mqctl.store.wire import ServerError


class GroupDeleted(NotFound):
    """The group was deleted on purpose while its consumers were running."""


@dataclass(slots=True)
class Groups:
    """The group of one consumer, which remembers where it has seen it."""

    session: Session
    options: ConsumerOptions
    note: Callable[[str], None]
    _seen: set[Slot] = field(default_factory=set)

    def begin(self, slots: Iterable[Slot]) -> None:
        """Create the group where it is missing, at the position asked for.

        A partition that a group has not seen yet begins at its start.
        """
        listed = list(slots)
        position = parse_position(self.options.position, self.session.clock.now_ms())
        states = self.delivered(listed)
        self._seen.update(listed)
        missing = [slot for slot in listed if states[slot] is None]
        known = {topic for topic, index in listed if states[topic, index] is not None}
        if known and self.options.position != "start":
            self.note(
                f"group {self.options.group} exists: it goes on where it was, "
                "--from has no effect"
            )
        if not missing:
            return
        check_new_group(self.options.group)
        starts = self._starts([s for s in missing if s[0] not in known], position)
        committed = self._committed(missing)
        self._create(
            {slot: committed.get(slot, starts.get(slot, "0-0")) for slot in missing}
        )

    def delivered(self, slots: list[Slot]) -> dict[Slot, str | None]:
        """Return the group's last delivered id in each partition, None = no group."""
        replies = self.session.wire.batch(
            [("XINFO", "GROUPS", self._stream(slot)) for slot in slots]
        )
        states: dict[Slot, str | None] = {}
        for slot, reply in zip(slots, replies, strict=True):
            if isinstance(reply, ServerError) and reply.kind == "WRONGTYPE":
                raise self._no_stream(slot)
            states[slot] = delivered(reply, self.options.group)
        return states

    def _no_stream(self, slot: Slot) -> WrongType:
        topic, index = slot
        return WrongType(
            f"partition {index} of topic {topic} is of the wrong type: "
            f"{self._stream(slot)} is not a stream",
            topic=topic,
            partition=index,
        )

    def _starts(self, slots: list[Slot], position: Position) -> dict[Slot, str]:
        """Return the id after which the group begins, for each partition."""
        if position.last is None:
            return dict.fromkeys(slots, position.after)
        replies = self.session.wire.calls(
            [
                ("XREVRANGE", self._stream(slot), "+", "-", "COUNT", position.last)
                for slot in slots
            ]
        )
        found = {
            slot: [ids.parse(raw.decode()) for raw, _ in entries]
            for slot, entries in zip(slots, replies, strict=True)
        }
        newest = sorted((i, slot) for slot, rows in found.items() for i in rows)
        chosen = newest[-position.last :] if position.last else []
        # Behind all that was there: what is appended meanwhile is newer still.
        starts = {s: _text(rows[0]) if rows else "0-0" for s, rows in found.items()}
        for entry_id, slot in reversed(chosen):
            starts[slot] = ids.before(_text(entry_id))
        return starts

    def _committed(self, slots: list[Slot]) -> dict[Slot, str]:
        """Return what the group had finished, where that is known."""
        keys, group = self.session.keys, self.options.group
        replies = self.session.wire.batch(
            [("HGETALL", keys.commit(topic, index)) for topic, index in slots]
        )
        found: dict[Slot, str] = {}
        for slot, flat in zip(slots, replies, strict=True):
            if isinstance(flat, ServerError):
                continue
            entries = map(native.commit_entry, flat[::2], flat[1::2])
            ids = [e[1] for e in entries if e is not None and e[0] == group]
            if ids:
                found[slot] = max(ids, key=lambda i: tuple(map(int, i.split("-"))))
        return found

    def _create(self, positions: dict[Slot, str]) -> None:
        group = self.options.group
        replies = self.session.wire.batch(
            [
                ("XGROUP", "CREATE", self._stream(slot), group, start, "MKSTREAM")
                for slot, start in positions.items()
            ]
        )
        for reply in replies:
            if isinstance(reply, ServerError) and reply.kind != "BUSYGROUP":
                raise reply.explained("creating the group")

    def restore(self, slots: list[Slot]) -> dict[Slot, str]:
        """Make the group again where it is missing, at what it had finished.

        Raises GroupDeleted when that was on purpose: the partition is there, and
        nothing says any more how far the group had come.
        """
        group, committed = self.options.group, self._committed(slots)
        known = [slot for slot in slots if slot in self._seen]
        there = self.session.wire.calls(("EXISTS", self._stream(s)) for s in known)
        for slot, exists in zip(known, there, strict=True):
            if exists and slot not in committed:
                raise GroupDeleted(
                    f"group {group} of topic {slot[0]} was deleted",
                    topic=slot[0],
                    group=group,
                )
        starts = {slot: committed.get(slot, "0-0") for slot in slots}
        for topic, index in known:
            self.note(
                f"the group {group} was gone from {topic}[{index}]: "
                f"made again after {starts[topic, index]}"
            )
        self._create(starts)
        return starts

    def enter(self, slots: list[Slot]) -> None:
        """Note in the commit hash that the group is there; one trip."""
        keys, group = self.session.keys, self.options.group
        self.session.wire.calls(
            [("HSETNX", keys.commit(t, i), group, "0-0") for t, i in slots]
        )
        self._seen.update(slots)

    def forget(self, topic: str) -> None:
        """Forget a topic that was deleted: if it comes back, all of it is new."""
        self._seen = {slot for slot in self._seen if slot[0] != topic}

    def _stream(self, slot: Slot) -> str:
        return self.session.keys.partition(*slot)


def _text(entry_id: tuple[int, int]) -> str:
    return f"{entry_id[0]}-{entry_id[1]}"
