"""Messages that are not simply appended: stored once, or delivered later."""

from dataclasses import dataclass
from hashlib import sha1

from mqctl.codecs import native
from mqctl.core.clock import rfc3339
from mqctl.core.errors import BadData, BadUsage
from mqctl.core.message import Outgoing
from mqctl.engine import payloads
from mqctl.engine.session import Session
from mqctl.store import scripts
from mqctl.store.wire import Arg, Reply, ServerError


@dataclass(frozen=True, slots=True)
class Later:
    """When a message is due: in `delay_ms` by the server's clock, or at `due_ms`."""

    delay_ms: int | None = None
    due_ms: int = 0


@dataclass(frozen=True, slots=True)
class Special:
    """What one message asks for beyond being appended."""

    dedupe: str | None = None
    dedupe_ttl_ms: int = 86_400_000
    later: Later | None = None

    def check(self, line: int) -> None:
        """Raise BadData for an empty deduplication key."""
        if self.dedupe == "":
            raise BadData("the deduplication key is empty", line=line or None)


def send(
    session: Session,
    topic: str,
    partition: int,
    message: Outgoing,
    special: Special,
    *,
    max_retries: int,
    bound: list[Arg],
    payload_ttl_ms: int = 0,
) -> tuple[str, str | int | bytes, str | None]:
    """Store one message; return status, value and retry item.

    (stored, id), (duplicate, what was first) or (delayed, due ms) with the item's
    key. At most four trips. Raises the server's error.
    """
    if special.later is not None:
        return _later(session, topic, partition, message, special, max_retries)
    return _once_aside(
        session,
        topic,
        partition,
        message,
        special,
        max_retries=max_retries,
        bound=bound,
        payload_ttl_ms=payload_ttl_ms,
    )


def is_pipelined(message: Outgoing, special: Special) -> bool:
    """Tell whether `once` may send the message in a batch with others."""
    return special.later is None and not payloads.is_large(message.payload)


def once(
    session: Session,
    topic: str,
    partition: int,
    message: Outgoing,
    special: Special,
    *,
    max_retries: int,
    bound: list[Arg],
) -> tuple[Arg, ...]:
    """Return the command that stores a message of ordinary size once.

    Its reply: [1, id] or [0, what was first].
    """
    fields = native.entry_fields(
        topic=topic,
        partition=partition,
        payload=message.payload,
        key=message.key,
        headers=message.headers,
        timestamp=rfc3339(session.clock.now_ms()),
        retry_count=0,
        max_retries=max_retries,
    )
    return scripts.append_once(
        session.wire,
        _once_keys(session, topic, partition, special),
        ttl_ms=special.dedupe_ttl_ms,
        partition=partition,
        bound=bound,
        fields=fields,
    )


def _once_keys(
    session: Session, topic: str, partition: int, special: Special
) -> tuple[str, str]:
    stream = session.keys.partition(topic, partition)
    dedupe = _dedupe_key(session, topic, partition, special)
    if not session.atomic([dedupe, stream]):
        raise BadUsage(
            f"topic {topic} cannot be deduplicated on a cluster: a lone brace in its "
            "name puts the keys into different slots"
        )
    return dedupe, stream


def _dedupe_key(session: Session, topic: str, partition: int, special: Special) -> str:
    raw = (special.dedupe or "").encode("utf-8", "surrogateescape")
    digest = sha1(raw, usedforsecurity=False).hexdigest()
    return session.keys.dedupe(topic, partition, digest)


def _once_aside(
    session: Session,
    topic: str,
    partition: int,
    message: Outgoing,
    special: Special,
    *,
    max_retries: int,
    bound: list[Arg],
    payload_ttl_ms: int,
) -> tuple[str, str | bytes, None]:
    dedupe, stream = _once_keys(session, topic, partition, special)
    first = session.wire.call("GET", dedupe)
    if first is not None:
        return "duplicate", first, None
    ref = payloads.store(
        session, topic, partition, message.payload, ttl_ms=payload_ttl_ms
    )
    fields = native.aside_fields(
        topic=topic,
        partition=partition,
        payload=message.payload,
        ref=ref,
        key=message.key,
        headers=message.headers,
        timestamp=rfc3339(session.clock.now_ms()),
        retry_count=0,
        max_retries=max_retries,
    )
    (reply,) = session.wire.calls(
        [
            scripts.append_once(
                session.wire,
                (dedupe, stream),
                ttl_ms=special.dedupe_ttl_ms,
                partition=partition,
                bound=bound,
                fields=fields,
            )
        ]
    )
    if reply[0] == 1:
        return "stored", reply[1].decode(), None
    payloads.drop(session, topic, [ref])
    return "duplicate", reply[1], None


def _later(
    session: Session,
    topic: str,
    partition: int,
    message: Outgoing,
    special: Special,
    max_retries: int,
) -> tuple[str, int | bytes, str | None]:
    keys = session.keys
    item = keys.retry_item(topic, session.uuid())
    touched = [item, keys.retries(topic)]
    if special.dedupe is not None:
        touched.append(_dedupe_key(session, topic, partition, special))
    fields = native.delayed_fields(
        topic=topic,
        partition=partition,
        payload=message.payload,
        key=message.key,
        headers=message.headers,
        timestamp=rfc3339(session.clock.now_ms()),
        max_retries=max_retries,
    )
    later = special.later or Later(delay_ms=0)
    if not session.atomic(touched):
        return "delayed", _later_in_order(session, touched, later, fields), item
    (reply,) = session.wire.calls(
        [
            scripts.delay_message(
                session.wire,
                touched,
                delay_ms=later.delay_ms,
                due_ms=later.due_ms,
                dedupe_ttl_ms=None if special.dedupe is None else special.dedupe_ttl_ms,
                fields=fields,
            )
        ]
    )
    if reply[0] == 1:
        return "delayed", int(reply[1]), item
    return "duplicate", reply[1], None


def _later_in_order(
    session: Session, touched: list[str], later: Later, fields: list[bytes]
) -> int:
    item, retries, *dedupe = touched
    if dedupe:
        raise BadUsage(
            "a delayed message cannot be deduplicated on a cluster",
            hint="write the topic as {NAME}: then all its keys share a slot",
        )
    session.wire.call("HSET", item, *fields)
    if later.delay_ms is None:
        session.wire.call("ZADD", retries, later.due_ms, item)
        return later.due_ms
    scheduled: list[Reply] = session.wire.calls(
        [scripts.schedule_item(session.wire, retries, item, later.delay_ms)]
    )
    return int(scheduled[0])


def is_moved(session: Session, topic: str, partitions: int) -> bool:
    """Tell whether anybody runs who would move the topic's delayed messages.

    Somebody holds a lease of it, mqctl or Java. Two trips.
    """
    keys = session.keys
    reply = session.wire.batch([("XINFO", "GROUPS", keys.partition(topic, 0))])[0]
    if isinstance(reply, ServerError):
        return False
    groups = [
        dict(zip(row[::2], row[1::2], strict=True))[b"name"].decode("utf-8", "replace")
        for row in reply
    ]
    leases = [keys.lease(topic, g, i) for g in groups for i in range(partitions)]
    return any(session.wire.batch([("EXISTS", lease) for lease in leases]))


def first_of(value: bytes) -> tuple[int | None, str]:
    """Read what a dedupe key holds: partition and id, or None and `retry:UUID`."""
    text = value.decode("utf-8", "replace")
    partition, _, entry_id = text.partition(":")
    return (int(partition), entry_id) if partition.isdigit() else (None, text)
