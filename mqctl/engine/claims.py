"""Taking over pending entries: page by page, in id order, without counting.

A take-over is XCLAIM ... JUSTID beside XRANGE, which leaves Redis's delivery counter
alone; the server's own idle test decides races between claimants.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mqctl.core.claim_rule import ClaimRule
from mqctl.core.ids import after
from mqctl.engine.session import Session

if TYPE_CHECKING:
    from mqctl.store.wire import Arg, Command

FOREVER_MS = 1_000_000_000
"""Idle time set on entries given back: above every claim-idle."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """An entry taken over, with Redis's delivery count as it stood."""

    id: str
    deliveries: int
    flat: list[bytes]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a scan. `cursor` is where the next begins, None at the end.

    `trimmed` entries had no body any more and were acknowledged. `ripens_ms` is when
    the first entry passed over becomes claimable, None if there is none.
    """

    claimed: list[Claimed]
    cursor: str | None
    trimmed: list[str]
    ripens_ms: int | None


def take_page(
    session: Session,
    stream: str,
    group: str,
    me: str,
    *,
    cursor: str,
    count: int,
    rule: ClaimRule,
    first: bool,
    in_hand: Collection[str],
    limit: int | None = None,
) -> Page:
    """Take over claimable entries of one page, at most `limit`. Three trips at most.

    Claimable: idle for as long as the rule says for it; `first` tells the rule that
    this run has not looked here yet. Entries in `in_hand` are passed over.
    """
    rows = session.wire.call("XPENDING", stream, group, cursor, "+", count)
    following = after(rows[-1][0].decode()) if len(rows) == count else None
    wanted: dict[str, _Candidate] = {}
    ripens: int | None = None
    for raw_id, owner, age, deliveries in rows:
        entry_id = raw_id.decode()
        if entry_id in in_hand:
            continue
        own = owner.decode("utf-8", "surrogateescape") == me
        enough = rule.threshold(own=own, first=first, deliveries=deliveries)
        if enough is None:
            continue
        if age < enough:
            ripens = min(ripens or FOREVER_MS, enough - age)
            continue
        wanted[entry_id] = _Candidate(deliveries, enough)
        if len(wanted) == limit:
            following = after(entry_id)
            break
    if not wanted:
        return Page([], following, [], ripens)
    reads = session.wire.calls([("XRANGE", stream, i, i) for i in wanted])
    bodies = {i: found[0][1] for i, found in zip(wanted, reads, strict=True) if found}
    trimmed = [i for i in wanted if i not in bodies]
    alive = {i: c for i, c in wanted.items() if i in bodies}
    won = _claim(session, stream, group, me, alive, trimmed)
    claimed = [
        Claimed(i, one.deliveries, bodies[i]) for i, one in alive.items() if i in won
    ]
    return Page(claimed, following, trimmed, ripens)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A pending entry that seems claimable: the server has the last word."""

    deliveries: int
    idle_ms: int


def _claim(
    session: Session,
    stream: str,
    group: str,
    me: str,
    alive: dict[str, _Candidate],
    trimmed: list[str],
) -> set[str]:
    by_threshold: dict[int, list[str]] = {}
    for entry_id, candidate in alive.items():
        by_threshold.setdefault(candidate.idle_ms, []).append(entry_id)
    commands: list[Command] = []
    for threshold, ids in by_threshold.items():
        claim: list[Arg] = ["XCLAIM", stream, group, me, threshold, *ids]
        commands.append((*claim, "JUSTID"))
    if trimmed:
        commands.append(("XACK", stream, group, *trimmed))
    replies = session.wire.calls(commands)
    if trimmed:
        replies.pop()
    return {raw.decode() for reply in replies for raw in reply if raw}


def give_back(
    session: Session, stream: str, group: str, me: str, entries: list[tuple[str, int]]
) -> None:
    """Make own entries claimable by everybody at once, attempts unchanged. One trip.

    `entries` are (id, deliveries).
    """
    by_count: dict[int, list[str]] = {}
    for entry_id, deliveries in entries:
        by_count.setdefault(deliveries, []).append(entry_id)
    commands: list[Command] = []
    for deliveries, ids in by_count.items():
        claim: list[Arg] = ["XCLAIM", stream, group, me, 0, *ids]
        claim += ["IDLE", FOREVER_MS, "RETRYCOUNT", deliveries, "JUSTID"]
        commands.append(claim)
    session.wire.calls(commands)
