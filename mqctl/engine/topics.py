"""Topics: the registry, the partition count, what exists."""

from difflib import get_close_matches

from mqctl.core.errors import BadData, NotFound
from mqctl.core.message import int_or
from mqctl.engine.session import Session


def exists(session: Session, topic: str) -> bool:
    """Tell whether the topic is in the registry; one trip."""
    return bool(session.wire.call("SISMEMBER", session.keys.registry, topic))


def names(session: Session) -> list[str]:
    """Return all registered topics, sorted; one trip."""
    found = session.wire.call("SMEMBERS", session.keys.registry)
    return sorted(name.decode("utf-8", "surrogateescape") for name in found)


def count(session: Session, topic: str) -> int:
    """Return the partition count, 1 where none is stored; one trip.

    Unlike the Java library an error is never taken for "1".
    """
    stored = session.wire.call("HGET", session.keys.meta(topic), "partitionCount")
    return counted(topic, stored)


def counted(topic: str, stored: bytes | None) -> int:
    """Read a stored partition count; BadData when it is not a positive number."""
    number = int_or(stored, 0) if stored is not None else 1
    if number < 1:
        raise BadData(f"topic {topic}: stored partition count is not a number")
    return number


def ensure(session: Session, topic: str, partitions: int) -> int:
    """Create the topic if it is not there; return its partition count.

    `HSETNX` decides races: the first count stays. At most two trips.
    """
    keys = session.keys
    created, stored, _ = session.wire.calls(
        [
            ("HSETNX", keys.meta(topic), "partitionCount", partitions),
            ("HGET", keys.meta(topic), "partitionCount"),
            ("SADD", keys.registry, topic),
        ]
    )
    number = counted(topic, stored)
    if created:
        streams = [keys.partition(topic, i) for i in range(number)]
        session.wire.call("SADD", keys.partitions(topic), *streams)
    return number


def require(session: Session, topic: str) -> int:
    """Return the partition count of a topic that must exist; NotFound otherwise."""
    if not exists(session, topic):
        raise missing(session, topic)
    return count(session, topic)


def missing(session: Session, topic: str) -> NotFound:
    """Return the error for an unknown topic, with the nearest name as a hint."""
    near = similar(session, topic)
    hint = f"did you mean {near}?" if near else "mqctl admin topics lists them"
    return NotFound(f"topic {topic} does not exist", hint=hint, topic=topic)


def similar(session: Session, topic: str) -> str | None:
    """Return the registered name nearest to a mistyped one."""
    found = get_close_matches(topic, names(session), 1)
    return found[0] if found else None
