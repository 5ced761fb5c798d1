"""What `produce` says of what it stored: receipts on stdout, the account on errors."""

from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

from mqctl.core.errors import BadData, MqError, UnknownOutcome

if TYPE_CHECKING:
    from mqctl.cli.context import Context
    from mqctl.engine.producer import Producer, Sent

Print = Literal["none", "id", "ndjson"]


def reporter(
    context: "Context", topic: str, what: Print
) -> "Callable[[list[Sent]], None] | None":
    """Return what prints the fate of messages, batch by batch; None for nothing."""
    if what == "none":
        return None

    def ids(sent: "list[Sent]") -> None:
        stored = [line for line in map(_id, sent) if line]
        context.out.write("".join(f"{entry_id}\n" for entry_id in stored).encode())

    def objects(sent: "list[Sent]") -> None:
        context.out.write(b"".join(_objects(topic, sent)))

    return ids if what == "id" else objects


def _id(sent: "Sent") -> str | None:
    if sent.item is not None:
        return f"retry:{sent.item.rsplit(':', 1)[1]}"
    return sent.id


def _objects(topic: str, sent: "list[Sent]") -> Iterator[bytes]:
    from mqctl.core.clock import rfc3339
    from mqctl.render.notes import json_bytes

    for one in sent:
        key, encoded = _key(one.key)
        record: dict[str, object] = {
            "line": one.line,
            "status": one.status,
            "topic": topic,
            "partition": one.partition,
            "id": one.id,
            "key": key,
            "ts_ms": one.ts_ms,
        }
        if encoded is not None:
            record["key_b64"] = encoded
        if one.item is not None and one.due_at_ms is not None:
            record["item"] = one.item
            record["due_at"] = rfc3339(one.due_at_ms)
            record["due_at_ms"] = one.due_at_ms
        if one.error is not None:
            record["error"] = one.error
        if one.receipt is not None:
            record["receipt"] = one.receipt
        yield json_bytes(record) + b"\n"


def _key(key: bytes | None) -> tuple[str | None, str | None]:
    """Return a key as text, or in base64 when it is none, as in the envelope."""
    if key is None:
        return None, None
    try:
        return key.decode(), None
    except UnicodeDecodeError:
        return None, b64encode(key).decode()


def skip_reporter(
    context: "Context", topic: str, what: Print
) -> Callable[[BadData], None]:
    """Return what tells of a bad line that was passed over."""

    def tell(error: BadData) -> None:
        context.note(f"skipped: {error.message}")
        if what == "ndjson":
            from mqctl.render.notes import json_bytes

            record = {
                "line": error.facts.get("line"),
                "status": "skipped",
                "topic": topic,
                "partition": None,
                "id": None,
                "key": None,
                "ts_ms": None,
                "error": error.message,
            }
            context.out.write(json_bytes(record) + b"\n")

    return tell


def finished(producer: "Producer", error: MqError) -> MqError:
    """Collect what is still in flight and add the account of the run to the error.

    An outcome nobody knows outranks every other cause.
    """
    if error is not producer.tally.cause:
        try:
            producer.drain()
        except MqError as later:
            if isinstance(later, UnknownOutcome) or not isinstance(error, BadData):
                error = later
    from mqctl.engine.producer import ranges

    tally = producer.tally
    given = error.facts.get("line")
    resume = tally.first_missing or producer.first_unsent or given
    counts = {
        "stored": tally.stored,
        "duplicates": tally.duplicates,
        "delayed": tally.delayed,
        "not stored": len(tally.failed),
        "unknown": len(tally.unknown),
    }
    said = [f"{n} {what}" for what, n in counts.items() if n or what == "stored"]
    where = f"line {given}"
    if isinstance(given, int) and where not in error.message:
        error.message = f"{where}: {error.message}"
    error.message = f"{error.message}; {', '.join(said)}"
    error.facts |= {"stored": tally.stored}
    if tally.failed:
        error.facts["not_stored"] = ranges([line for line, _ in tally.failed])
    if tally.unknown:
        error.facts["unknown"] = ranges(tally.unknown)
    if isinstance(resume, int) and (tally.stored or tally.unknown):
        error.facts["resume_line"] = resume
        again = tally.stored_after
        twice = f" ({again} lines after it are stored already)" if again else ""
        resuming = f"go on with --start-line {resume}{twice}"
        error.hint = f"{error.hint}; {resuming}" if error.hint else resuming
    return error
