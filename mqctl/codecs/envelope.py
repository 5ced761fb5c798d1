r"""The envelope: one message as one JSON line, out of and into mqctl.

Fields stand in a fixed order and the payload comes last, as exactly one of
`payload` (text), `payload_b64` (bytes that are not UTF-8) and `payload_json` (valid
JSON without a raw newline, on request: its own bytes, untouched, up to the closing
brace of the line). Every line ends in `\n` and holds no other.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator

import orjson

from mqctl.core import headers as h
from mqctl.core.clock import rfc3339
from mqctl.core.errors import BadData
from mqctl.core.message import DeadLetter, Delivery, Message, Outgoing
from mqctl.core.receipts import Receipt, format_receipt

TAG = "tag"
_PAYLOADS = ("payload", "payload_b64", "payload_json")
_JSON_FIELD = b',"payload_json":'
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"\s*+(:?)|[\[{]|[\]}]|,', re.DOTALL)
_MAX_RETRIES = 2**31 - 1
_KINDS = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def encode_delivery(
    delivery: Delivery,
    *,
    receipt: bool = False,
    json_payload: bool = False,
    seq: int | None = None,
) -> bytes:
    """Return the line of a delivery; `seq` numbers it for a worker.

    `receipt` adds `deliveries`, `group`, `consumer` and the `receipt`. BadData when
    a name or header holds a lone surrogate, which JSON cannot carry.
    """
    message = delivery.message
    record = _record(message, delivery.attempt)
    if receipt:
        record["deliveries"] = delivery.deliveries
        record["group"] = delivery.group
        record["consumer"] = delivery.consumer
        record["receipt"] = format_receipt(receipt_of(delivery))
    if seq is not None:
        record["seq"] = seq
    return _line(record, message.payload, json_payload=json_payload)


def encode_deliveries(
    deliveries: Iterable[Delivery], *, receipt: bool = False, json_payload: bool = False
) -> bytes:
    """Return the lines of a batch."""
    return b"".join(
        [
            encode_delivery(item, receipt=receipt, json_payload=json_payload)
            for item in deliveries
        ]
    )


def encode_message(message: Message, *, json_payload: bool = False) -> bytes:
    """Return the line of a message nobody was handed; `attempt` is the next one's."""
    record = _record(message, message.retry_count + 1)
    return _line(record, message.payload, json_payload=json_payload)


def encode_dead(dead: DeadLetter, *, json_payload: bool = False) -> bytes:
    """Return the line of a dead letter: its own id, `attempt` = attempts made."""
    death = dead.death
    record = _record(dead.message, death.attempts)
    record["dead"] = {
        "reason": death.reason,
        "detail": death.detail,
        "group": death.group or None,
        "consumer": death.consumer or None,
        "attempts": death.attempts,
        "exit_code": death.exit_code,
        "signal": death.signal,
        "stderr": death.stderr,
        "failed_at": rfc3339(dead.failed_at_ms),
        "failed_at_ms": dead.failed_at_ms,
        "last_id": dead.last_id,
        "partition_known": dead.partition_known,
    }
    return _line(record, dead.message.payload, json_payload=json_payload)


def receipt_of(delivery: Delivery) -> Receipt:
    """Return what settles this delivery."""
    message = delivery.message
    return Receipt(
        message.topic,
        message.partition,
        message.id,
        delivery.group,
        delivery.consumer,
        delivery.deliveries,
    )


def timestamp(message: Message) -> str:
    """Return the message's time in RFC 3339 with milliseconds, UTC.

    Streams hold 0, 3, 6 or 9 decimals; three are taken as they stand.
    """
    text = message.timestamp
    if len(text) == len("2026-01-02T03:04:05.678Z") and text[-1] == "Z":
        return text
    return rfc3339(message.ts_ms)


def decode(line: bytes, number: int) -> Outgoing:
    r"""Read one line as a new message; `number` (1-based) is where it stands.

    Key, headers (without the transport ones), `tag`, `max_retries`, the payload and
    a receipt are taken; all else is ignored. `partition` is the envelope's when that
    is a whole number; whether it counts is the caller's choice. `payload_json` may
    stand anywhere: its payload is every byte from the colon to the comma or brace
    that ends it, white space included. The line may end in `\n`.

    BadData, with `line`, when it is not such an object.
    """
    try:
        record, raw = _parse(line)
        return Outgoing(
            payload=_payload(record, raw),
            key=_key(record),
            headers=_headers(record),
            partition=_partition(record),
            max_retries=_max_retries(record),
            line=number,
            receipt=_optional_text(record, "receipt"),
        )
    except orjson.JSONDecodeError as error:
        reason = f"not JSON: {error.msg} (byte {error.pos + 1})"
        raise BadData(reason, line=number) from None
    except BadData as error:
        raise BadData(error.message, hint=error.hint, line=number) from None


# Writing


def _record(message: Message, attempt: int) -> dict[str, object]:
    key, key_b64 = message.key, None
    text = None
    if key is not None:
        try:
            text = key.decode()
        except UnicodeDecodeError:
            key_b64 = b64encode(key).decode()
    headers = message.headers
    record: dict[str, object] = {
        "topic": message.topic,
        "partition": message.partition,
        "id": message.id,
        "timestamp": timestamp(message),
        "ts_ms": message.ts_ms,
        "key": text,
        "headers": h.application(headers),
        "attempt": attempt,
        "max_retries": message.max_retries,
    }
    if key_b64 is not None:
        record["key_b64"] = key_b64
    original = message.original_id
    if original != message.id:
        record["original_id"] = original
    if headers:
        replays = message.replay_count
        if replays > 0:
            record["replay_count"] = replays
        if TAG in headers:
            record["tag"] = headers[TAG]
    return record


def _line(record: dict[str, object], payload: bytes, *, json_payload: bool) -> bytes:
    if json_payload and _embeddable(payload):
        return b"".join((_dumps(record)[:-1], _JSON_FIELD, payload, b"}\n"))
    try:
        record["payload"] = payload.decode()
    except UnicodeDecodeError:
        record["payload_b64"] = b64encode(payload).decode()
    return _dumps(record) + b"\n"


def _dumps(record: dict[str, object]) -> bytes:
    try:
        return orjson.dumps(record)
    except TypeError:  # a lone surrogate, or an integer of more than 64 bits
        pass
    try:
        return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        where = {"topic": str(record["topic"]), "id": str(record["id"])}
        raise BadData("text with a lone surrogate is not JSON", **where) from None


def _embeddable(payload: bytes) -> bool:
    """Tell whether the bytes are one JSON value that fits in a line and an object."""
    return b"\n" not in payload and _is_one_value(payload)


def _is_one_value(raw: bytes) -> bool:
    # Inside an array the value is as deep as it will be in the envelope, which
    # matters at the parser's depth limit; `1,2` makes two, nothing makes none.
    try:
        return len(orjson.loads(b"[%b]" % raw)) == 1
    except orjson.JSONDecodeError:
        return False


# Reading


def _parse(line: bytes) -> tuple[dict[str, object], bytes | None]:
    """Return the fields and the raw bytes of `payload_json`."""
    found = _parse_as_written(line)
    if found:
        return found
    record = orjson.loads(line)
    if not isinstance(record, dict):
        raise BadData(f"not an object but {_kind(record)}")
    if "payload_json" not in record:
        return record, None
    spans = [raw for name, raw in _members(line) if name == "payload_json"]
    if len(spans) > 1:
        raise BadData("payload_json is given twice")
    return record, spans[0]


def _parse_as_written(line: bytes) -> tuple[dict[str, object], bytes] | None:
    """Split a line that has `payload_json` last, without parsing anything twice.

    What precedes the field must be an object once closed, and what follows one
    value: then the field is where it seems to be and not inside a string.
    """
    cut = line.find(_JSON_FIELD)
    end = line.rfind(b"}")
    raw = line[cut + len(_JSON_FIELD) : end]
    if cut < 0 or line[end + 1 :].strip() or not _is_one_value(raw):
        return None
    try:
        record = orjson.loads(line[:cut] + b"}")
    except orjson.JSONDecodeError:
        return None
    if not isinstance(record, dict) or not record or "payload_json" in record:
        return None
    record["payload_json"] = None  # its presence counts, its value is `raw`
    return record, raw


def _members(line: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield name and raw value of each member of the object that `line` is."""
    depth = start = 0
    name = b""
    for token in _TOKEN.finditer(line):
        sign = token[0][:1]
        if sign == b'"':
            if token[1] and depth == 1:
                name, start = token[0][:-1], token.end()
        elif sign in b"{[":
            depth += 1
        else:
            if depth == 1 and name:
                yield orjson.loads(name), line[start : token.start()]
            depth -= sign != b","


def _payload(record: dict[str, object], raw: bytes | None) -> bytes:
    given = [name for name in _PAYLOADS if name in record]
    if len(given) > 1:
        raise BadData(f"more than one payload: {' and '.join(given)}")
    if raw is not None:
        return raw
    if not given:
        return b""
    value = record[given[0]]
    if not isinstance(value, str):
        hint = "give JSON as payload_json" if given[0] == "payload" else None
        raise BadData(f"{given[0]} must be a string, not {_kind(value)}", hint=hint)
    return value.encode() if given[0] == "payload" else _base64(given[0], value)


def _key(record: dict[str, object]) -> bytes | None:
    text = _optional_text(record, "key")
    encoded = _optional_text(record, "key_b64")
    if text is not None and encoded is not None:
        raise BadData("more than one key: key and key_b64")
    if encoded is not None:
        return _base64("key_b64", encoded)
    return None if text is None else text.encode()


def _headers(record: dict[str, object]) -> dict[str, str]:
    given = record.get("headers")
    if given is not None and not isinstance(given, dict):
        raise BadData(f"headers must be an object, not {_kind(given)}")
    headers = given or {}
    for name, value in headers.items():
        if not isinstance(value, str):
            raise BadData(f"header {name} must be a string, not {_kind(value)}")
    kept = h.application(headers)
    tag = _optional_text(record, "tag")
    if tag is not None:
        kept[TAG] = tag
    return kept


def _max_retries(record: dict[str, object]) -> int | None:
    value = record.get("max_retries")
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadData(f"max_retries must be a whole number, not {_kind(value)}")
    if not 0 <= value <= _MAX_RETRIES:
        raise BadData(f"max_retries must be 0 to {_MAX_RETRIES}, not {value}")
    return value


def _partition(record: dict[str, object]) -> int | None:
    value = record.get("partition")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _optional_text(record: dict[str, object], name: str) -> str | None:
    value = record.get(name)
    if value is None or isinstance(value, str):
        return value
    raise BadData(f"{name} must be a string or null, not {_kind(value)}")


def _base64(name: str, text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise BadData(f"{name} is not base64") from None


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "null")
