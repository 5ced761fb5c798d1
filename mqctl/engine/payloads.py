"""Large bodies stored aside: written before the entry that refers to them."""

from mqctl.codecs import native
from mqctl.core.errors import BadData
from mqctl.core.message import Message
from mqctl.engine.session import Session
from mqctl.store.wire import ServerError

SURE = native.INLINE_LIMIT // 6 - 1
"""Bytes below which no escape can make a body too large for its entry."""


def is_large(payload: bytes) -> bool:
    """Tell whether the body's JSON text has more than 65,536 bytes."""
    return native.stored_size(payload) > native.INLINE_LIMIT


def store(session: Session, topic: str, partition: int, payload: bytes) -> str:
    """Store a body and index it; return its key. One trip.

    Raises the server's error when the body itself was not stored; an index that
    fails is left to the sweep.
    """
    keys = session.keys
    ref = keys.payload(topic, partition, session.uuid())
    text, _ = native.aside_text(payload)
    stored, *_ = session.wire.batch(
        [
            ("SET", ref, text),
            ("SADD", keys.payload_index(topic), ref),
            ("ZADD", keys.payload_times, session.clock.now_ms(), ref),
        ]
    )
    if isinstance(stored, ServerError):
        raise stored.explained("storing a large payload")
    return ref


def load(session: Session, messages: list[Message]) -> list[Message | None]:
    """Return the messages with their bodies loaded; None where the body is gone.

    One trip for all. Only keys under the payload prefix are ever read, whatever an
    entry says.
    """
    prefix = session.keys.payload_prefix
    wanted = [m.payload_ref for m in messages if m.payload_ref and is_ours(prefix, m)]
    bodies = dict(
        zip(wanted, session.wire.batch([("GET", r) for r in wanted]), strict=True)
    )
    loaded: list[Message | None] = []
    for message in messages:
        if not message.payload_ref:
            loaded.append(message)
            continue
        body = bodies.get(message.payload_ref)
        if isinstance(body, ServerError):
            if body.kind != "WRONGTYPE":
                raise body.explained("loading a large payload")
            body = None
        loaded.append(None if body is None else _with_body(message, body))
    return loaded


def is_ours(prefix: str, message: Message) -> bool:
    """Tell whether a body reference points at a payload key and nowhere else."""
    return bool(message.payload_ref) and str(message.payload_ref).startswith(prefix)


def _with_body(message: Message, body: bytes) -> Message | None:
    try:
        return native.with_body(message, body)
    except BadData:
        return None
