"""What a group has left: undelivered, abandoned, due, in work, delayed."""

from collections.abc import Iterable
from dataclasses import dataclass

from mqctl.core.assignment import Slot
from mqctl.engine import retries
from mqctl.engine.session import Session
from mqctl.store.wire import ServerError


@dataclass(frozen=True, slots=True)
class Standing:
    """What is left.

    `startable`: somebody could start something now: an entry not delivered, one
    pending for longer than claim-idle, a retry that is due. `pending` entries are in
    work somewhere, `delayed` retries wait, the first for `next_delayed_ms`.
    """

    startable: bool
    pending: int
    delayed: int
    next_delayed_ms: int | None


def standing(
    session: Session, group: str, slots: Iterable[Slot], claim_idle_ms: int
) -> Standing:
    """Look at a group over the given partitions; three trips."""
    listed = list(slots)
    streams = [session.keys.partition(topic, index) for topic, index in listed]
    infos = session.wire.batch([("XINFO", "GROUPS", s) for s in streams])
    lasts = [delivered(info, group) for info in infos]
    replies = iter(
        session.wire.batch(
            [
                command
                for stream, last in zip(streams, lasts, strict=True)
                for command in (
                    ("XRANGE", stream, f"({last}" if last else "-", "+", "COUNT", 1),
                    ("XPENDING", stream, group, "IDLE", claim_idle_ms, "-", "+", 1),
                    ("XPENDING", stream, group),
                )
            ]
        )
    )
    startable, pending = False, 0
    for undelivered, abandoned, summary in zip(replies, replies, replies, strict=True):
        startable = startable or any(
            not isinstance(reply, ServerError) and bool(reply)
            for reply in (undelivered, abandoned)
        )
        if not isinstance(summary, ServerError):
            pending += int(summary[0])
    delayed, next_ms = 0, None
    for topic in dict.fromkeys(topic for topic, _ in listed):
        total, due, first = retries.waiting(session, topic)
        startable = startable or due > 0
        delayed += total - due
        if first is not None:
            wait = max(0, first - session.clock.now_ms())
            next_ms = wait if next_ms is None else min(next_ms, wait)
    return Standing(startable, pending, delayed, next_ms)


def delivered(info: object, group: str) -> str | None:
    """Return a group's last delivered id, None when it has none here."""
    if isinstance(info, ServerError) or not isinstance(info, list):
        return None
    wanted = group.encode("utf-8", "surrogateescape")
    for row in info:
        fields = dict(zip(row[::2], row[1::2], strict=True))
        if fields[b"name"] == wanted:
            return str(fields[b"last-delivered-id"].decode())
    return None
