"""What retention may remove: decisions over ids, groups and times; nothing is read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mqctl.core import ids
from mqctl.core.errors import BadUsage

ABANDONED_MS = 24 * 3_600_000
"""How long a group must have shown no sign of life to be called abandoned."""

ORPHAN_MS = 3_600_000
"""How much older than all entries a body must be for none of them to be its own."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of each partition stays, of that which all groups have finished.

    The newest `keep` entries (0 = all) not older than `keep_for_ms` (0 = of any age).
    Entries with a body stored aside go, body and all, as soon as they are finished,
    unless `keep_payloads`. Looked at every `interval_ms`.
    """

    keep: int = 100_000
    keep_for_ms: int = 0
    interval_ms: int = 60_000
    keep_payloads: bool = False

    def __post_init__(self) -> None:
        if self.keep < 0 or self.keep_for_ms < 0:
            raise BadUsage("--keep and --keep-for must not be negative")
        if self.interval_ms < 1:
            raise BadUsage("--keep-interval must be more than 0")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a group is in a partition, as XINFO GROUPS and XPENDING have it."""

    group: str
    delivered_id: str
    lowest_pending: str | None = None

    def finished(self, entry_id: str) -> bool:
        """Tell whether the group has finished this entry and all before it.

        A pending entry above the last delivered one (the group was reset) does not
        make finished what lies between them.
        """
        entry = ids.parse(entry_id)
        if self.lowest_pending and entry >= ids.parse(self.lowest_pending):
            return False
        return entry <= ids.parse(self.delivered_id)


@dataclass(frozen=True, slots=True)
class Cut:
    """How many of the oldest entries go, and the groups for which more must stay."""

    remove: int
    holding: tuple[str, ...] = ()


def cut(
    entries: Sequence[str], groups: Iterable[Progress], kept: Retention, now_ms: int
) -> Cut:
    """Decide about a partition with these ids, in order; `now_ms` by the server.

    What trim_finished.lua does in pages. Without any group nothing goes: the first
    has yet to read it.
    """
    readers = list(groups)
    if not readers:
        return Cut(0)
    excess = len(entries) - kept.keep if kept.keep else 0
    cutoff = max(0, now_ms - kept.keep_for_ms) if kept.keep_for_ms else 0
    for index, entry in enumerate(entries):
        if index >= excess and ids.parse(entry)[0] >= cutoff:
            return Cut(index)
        holding = tuple(g.group for g in readers if not g.finished(entry))
        if holding:
            return Cut(index, holding)
    return Cut(len(entries))


def abandoned(last_sign_ms: int, now_ms: int) -> bool:
    """Tell whether a group whose last sign of life is that old is given up."""
    return now_ms - last_sign_ms >= ABANDONED_MS


def orphaned(
    stored_ms: float, *, now_ms: int, first_id: str | None, generated_id: str
) -> bool:
    """Tell whether no entry of its partition can refer to a body stored then.

    Its entry follows a body at once; an hour lies between for clocks that differ. So
    it is an orphan when the oldest entry is an hour younger, or there is none left.
    Nothing is concluded from a stream that was never written (it may have another
    prefix), nor while its newest id is ahead of `now_ms`: the server's clock has been
    set back, and new entries have old bodies.
    """
    newest = ids.parse(generated_id)
    if newest == (0, 0) or newest[0] > now_ms:
        return False
    oldest = now_ms if first_id is None else min(now_ms, ids.parse(first_id)[0])
    return stored_ms + ORPHAN_MS < oldest


def home_of(payload_prefix: str, ref: str) -> tuple[str, int] | None:
    """Return topic and partition in a body's key, None when it is no such key."""
    if not ref.startswith(payload_prefix):
        return None
    place, _, uuid = ref[len(payload_prefix) :].rpartition(":")
    topic, _, index = place.rpartition(":p:")
    if not topic or not uuid or not (index.isascii() and index.isdigit()):
        return None
    return topic, int(index)
