"""Taking over pending entries: page by page, in id order, without counting.

A take-over is XCLAIM ... JUSTID beside XRANGE, which leaves Redis's delivery counter
alone; the server's own idle test decides races between claimants.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    idle_ms: int,
    mine: bool,
    in_hand: Collection[str],
    limit: int | None = None,
) -> Page:
    """Take over claimable entries of one page, at most `limit`. Three trips at most.

    Claimable: idle for `idle_ms` whoever holds it; with `mine` also every entry
    pending under my own name. Entries in `in_hand` are passed over.
    """
    rows = session.wire.call("XPENDING", stream, group, cursor, "+", count)
    following = after(rows[-1][0].decode()) if len(rows) == count else None
    own: list[tuple[str, int]] = []
    idle: list[tuple[str, int]] = []
    ripens: int | None = None
    for raw_id, owner, age, deliveries in rows:
        entry_id = raw_id.decode()
        if entry_id in in_hand:
            continue
        if mine and owner.decode("utf-8", "surrogateescape") == me:
            own.append((entry_id, deliveries))
        elif age >= idle_ms:
            idle.append((entry_id, deliveries))
        else:
            ripens = min(ripens or FOREVER_MS, idle_ms - age)
        if len(own) + len(idle) == limit:
            following = after(entry_id)
            break
    if not own and not idle:
        return Page([], following, [], ripens)
    counts = dict(own + idle)
    order = sorted(counts, key=lambda i: tuple(map(int, i.split("-"))))
    reads = session.wire.calls([("XRANGE", stream, i, i) for i in order])
    bodies = {i: found[0][1] for i, found in zip(order, reads, strict=True) if found}
    trimmed = [i for i in order if i not in bodies]
    won = _claim(session, stream, group, me, own, idle, bodies, idle_ms, trimmed)
    claimed = [Claimed(i, counts[i], bodies[i]) for i in order if i in won]
    return Page(claimed, following, trimmed, ripens)


def _claim(
    session: Session,
    stream: str,
    group: str,
    me: str,
    own: list[tuple[str, int]],
    idle: list[tuple[str, int]],
    bodies: dict[str, list[bytes]],
    idle_ms: int,
    trimmed: list[str],
) -> set[str]:
    commands: list[Command] = []
    for rows, threshold in ((own, 0), (idle, idle_ms)):
        ids = [i for i, _ in rows if i in bodies]
        if ids:
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
