"""The Lua scripts: loaded once, each behind one typed function.

A function returns the command to send; its docstring says what the reply holds.
The first use on a connection sends the source, later ones its digest. Every script
names all keys it touches.
"""

from collections.abc import Sequence
from functools import cache
from hashlib import sha1
from pathlib import Path

from mqctl.store.wire import Arg, Wire


@cache
def source(name: str) -> str:
    """Return a script's text."""
    return (Path(__file__).parent / "lua" / f"{name}.lua").read_text("utf-8")


@cache
def _digest(name: str) -> str:
    return sha1(source(name).encode(), usedforsecurity=False).hexdigest()


def _command(
    wire: Wire, name: str, keys: Sequence[str], args: Sequence[Arg]
) -> tuple[Arg, ...]:
    digest = _digest(name)
    if digest in wire.sources:
        return ("EVALSHA", digest, len(keys), *keys, *args)
    wire.sources[digest] = source(name)
    return ("EVAL", source(name), len(keys), *keys, *args)


def beat_member(wire: Wire, members: str, ttl_ms: int, member: Arg) -> tuple[Arg, ...]:
    """Beat for `member` (or only look, with ""): [now ms, member, score, ...]."""
    return _command(wire, "beat_member", [members], [ttl_ms, member])


def hold_lease(
    wire: Wire, lease: str, me: str, holder: str, ttl_ms: int
) -> tuple[Arg, ...]:
    """Renew (holder = me), hand over, or drop (holder = ""): 1, or 0 if not mine."""
    return _command(wire, "hold_lease", [lease], [me, holder, ttl_ms])


def settle(wire: Wire, keys: Sequence[str], args: Sequence[Arg]) -> tuple[Arg, ...]:
    """Settle deliveries: ["lost"], or ["done", frontier, result, ...]."""
    return _command(wire, "settle", keys, args)


def raise_frontier(
    wire: Wire, commit: str, group: str, frontier: str
) -> tuple[Arg, ...]:
    """Raise the group's frontier if that is higher: 1 or 0."""
    return _command(wire, "raise_frontier", [commit], [group, frontier])


def schedule_item(
    wire: Wire, retries: str, item: str, delay_ms: int
) -> tuple[Arg, ...]:
    """Give an item its due time: epoch ms."""
    return _command(wire, "schedule_item", [retries], [item, delay_ms])


def due_items(wire: Wire, retries: str, limit: int, hold_ms: int) -> tuple[Arg, ...]:
    """List due items: [now ms, next due ms or "", item, ...]."""
    return _command(wire, "due_items", [retries], [limit, hold_ms])


def move_item(
    wire: Wire, retries: str, item: str, stream: str, fields: Sequence[bytes]
) -> tuple[Arg, ...]:
    """Move one due item into its stream: 1, or 0 if another mover had it."""
    return _command(wire, "move_item", [retries, item, stream], fields)


def drop_consumer(
    wire: Wire, stream: str, group: str, consumer: str
) -> tuple[Arg, ...]:
    """Forget a consumer that holds nothing: 1 or 0."""
    return _command(wire, "drop_consumer", [stream], [group, consumer])


def replay_dead(
    wire: Wire,
    keys: tuple[str, str, str],
    entry_id: str,
    *,
    delete: bool,
    history: bytes,
    fields: Sequence[bytes],
) -> tuple[Arg, ...]:
    """Copy a dead letter back: the new id, b"gone" or b"changed"."""
    then = "delete" if delete else "keep"
    return _command(wire, "replay_dead", keys, [entry_id, then, history, *fields])


def append_once(
    wire: Wire,
    keys: tuple[str, str],
    *,
    ttl_ms: int,
    partition: int,
    bound: Sequence[Arg],
    fields: Sequence[bytes],
) -> tuple[Arg, ...]:
    """Append unless the dedupe key is known: [1, id] or [0, b"partition:id"]."""
    args: list[Arg] = [ttl_ms, partition, len(bound), *bound, *fields]
    return _command(wire, "append_once", keys, args)


def delay_message(
    wire: Wire,
    keys: Sequence[str],
    *,
    delay_ms: int | None,
    due_ms: int,
    dedupe_ttl_ms: int | None,
    fields: Sequence[bytes],
) -> tuple[Arg, ...]:
    """Store a message for later: [1, due ms] or [0, what the dedupe key holds].

    `keys` are item, retry bucket and, with a ttl, the dedupe key. `delay_ms` counts
    from now by the server's clock; None takes `due_ms`.
    """
    delay = "" if delay_ms is None else delay_ms
    ttl = "" if dedupe_ttl_ms is None else dedupe_ttl_ms
    held = f"retry:{keys[0].rsplit(':', 1)[1]}"
    return _command(wire, "delay_message", keys, [delay, due_ms, ttl, held, *fields])


def trim_finished(
    wire: Wire, stream: str, *, keep: int, age_ms: int, page: int, bodies_from: str
) -> tuple[Arg, ...]:
    """Trim what all groups have finished, one page.

    The reply: [removed, 1 = call again, left, next bodies_from, [holding group, ...],
    [[id, fields], ...] of removed entries that may refer to a body].
    """
    return _command(wire, "trim_finished", [stream], [keep, age_ms, page, bodies_from])


def ack_delete(
    wire: Wire,
    keys: Sequence[str],
    *,
    policy: str,
    group: str,
    ackset_ttl_ms: int,
    ids: Sequence[str],
) -> tuple[Arg, ...]:
    """Remove acknowledged entries: [[id gone, ...], [[id, fields], ...]].

    `keys` are the stream and, where they share its slot, the ids' ack sets. The second
    list is as that of `trim_finished`.
    """
    return _command(wire, "ack_delete", keys, [policy, group, ackset_ttl_ms, *ids])


def keep_retry(
    wire: Wire,
    keys: tuple[str, str],
    *,
    me: str,
    entry_id: str,
    attempts: int,
    delay_ms: int,
    ttl_ms: int,
) -> tuple[Arg, ...]:
    """Remember a failed message its partition waits for: 1, or 0 if not mine."""
    return _command(
        wire, "keep_retry", keys, [me, entry_id, attempts, delay_ms, ttl_ms]
    )


def drop_kept(wire: Wire, record: str, entry_id: str) -> tuple[Arg, ...]:
    """Forget the record of this message: 1, or 0 if it is another's."""
    return _command(wire, "drop_kept", [record], [entry_id])
