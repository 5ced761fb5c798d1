"""Large bodies stored aside: written before the entry that refers to them."""

from dataclasses import replace

from mqctl.codecs import native
from mqctl.core import headers as h
from mqctl.core.errors import BadData
from mqctl.core.message import Message
from mqctl.engine.session import Session
from mqctl.store.wire import ServerError

SURE = native.INLINE_LIMIT // 6 - 1
"""Bytes below which no escape can make a body too large for its entry."""


def is_large(payload: bytes) -> bool:
    """Tell whether the body's JSON text has more than 65,536 bytes."""
    return native.stored_size(payload) > native.INLINE_LIMIT


def store(
    session: Session, topic: str, partition: int, payload: bytes, *, ttl_ms: int = 0
) -> str:
    """Index a body and store it; return its key. One trip. `ttl_ms` 0: it stays.

    Indexed first: a crash never leaves a body that the sweep does not know. Raises
    the server's error when the body itself was not stored.
    """
    keys = session.keys
    ref = keys.payload(topic, partition, session.uuid())
    text, _ = native.aside_text(payload)
    *_, stored = session.wire.batch(
        [
            ("ZADD", keys.payload_times, session.clock.now_ms(), ref),
            ("SADD", keys.payload_index(topic), ref),
            ("SET", ref, text, "PX", ttl_ms) if ttl_ms else ("SET", ref, text),
        ]
    )
    if isinstance(stored, ServerError):
        raise stored.explained("storing a large payload")
    return ref


def drop(session: Session, topic: str, refs: list[str]) -> None:
    """Delete bodies of a topic and their index entries; no other keys. One trip."""
    keys = session.keys
    own = f"{keys.payload_prefix}{topic}:p:"
    ours = [ref for ref in refs if ref.startswith(own)]
    if ours:
        session.wire.calls(
            [
                *(("DEL", ref) for ref in ours),
                ("SREM", keys.payload_index(topic), *ours),
                ("ZREM", keys.payload_times, *ours),
            ]
        )


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


def marked_missing(message: Message) -> Message:
    """Return the message of a body that is gone: empty, with headers that say so."""
    marked = {
        **message.headers,
        h.PAYLOAD_MISSING: "true",
        h.PAYLOAD_MISSING_REF: message.payload_ref or "",
    }
    return replace(message, payload_ref=None, headers=marked)


def is_ours(prefix: str, message: Message) -> bool:
    """Tell whether a body reference points at a payload key and nowhere else."""
    return bool(message.payload_ref) and str(message.payload_ref).startswith(prefix)


def _with_body(message: Message, body: bytes) -> Message | None:
    try:
        return native.with_body(message, body)
    except BadData:
        return None
