"""Which topics and partitions a consumer wants: by name, by pattern, by index."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from mqctl.core.assignment import FIXED, Slot, subscription_id
from mqctl.core.errors import BadUsage


@dataclass(frozen=True, slots=True)
class Selection:
    """Topics named, or those whose whole name matches; all or some partitions.

    `shard` is (remainder, modulo). A topic that `exclude` matches is never taken.
    """

    topics: tuple[str, ...] = ()
    glob: str | None = None
    regex: str | None = None
    exclude: str | None = None
    partitions: tuple[int, ...] = ()
    shard: tuple[int, int] | None = None
    _regex: re.Pattern[str] | None = field(default=None, repr=False, compare=False)
    _exclude: re.Pattern[str] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.topics and not self.by_pattern:
            raise BadUsage("no topic: name one, or use --topic-glob or --topic-regex")
        if self.partitions and self.shard:
            raise BadUsage("--partition and --shard exclude each other")
        if self.shard is not None and not 0 <= self.shard[0] < self.shard[1]:
            raise BadUsage(
                f"not a shard: {self.shard[0]}/{self.shard[1]}",
                hint="--shard R/M takes the partitions with index mod M = R",
            )
        object.__setattr__(self, "_regex", _compiled(self.regex))
        object.__setattr__(self, "_exclude", _compiled(self.exclude))

    @property
    def by_pattern(self) -> bool:
        """Tell whether topics are found by a pattern too."""
        return self.glob is not None or self.regex is not None

    @property
    def subscription(self) -> str:
        """Return what members that share the same partitions have in common."""
        if self.partitions or self.shard:
            return FIXED
        kinds = {"glob": self.glob, "regex": self.regex, "exclude": self.exclude}
        patterns = (f"{kind}:{text}" for kind, text in kinds.items() if text)
        return subscription_id([*self.topics, *patterns])

    def named(self) -> list[str]:
        """Return the topics wanted by name."""
        return [topic for topic in self.topics if not self._is_excluded(topic)]

    def found(self, topics: Iterable[str]) -> list[str]:
        """Return those of the topics that a pattern matches."""
        return [t for t in topics if self._matches(t) and not self._is_excluded(t)]

    def _matches(self, topic: str) -> bool:
        if self.glob is not None and fnmatchcase(topic, self.glob):
            return True
        return self._regex is not None and bool(self._regex.fullmatch(topic))

    def _is_excluded(self, topic: str) -> bool:
        return self._exclude is not None and bool(self._exclude.fullmatch(topic))

    def slots(self, topic: str, count: int) -> list[Slot]:
        """Return the partitions wanted of a topic that has `count`."""
        indices: Iterable[int] = range(count)
        if self.partitions:
            indices = (i for i in self.partitions if i < count)
        elif self.shard is not None:
            remainder, modulo = self.shard
            indices = range(remainder, count, modulo)
        return [(topic, index) for index in indices]


def _compiled(text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadUsage(f"not a regular expression: {text}: {error}") from None
