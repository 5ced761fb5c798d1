"""What a command is told about its message: arguments and environment.

All of it is bytes, as the system passes it on. Nothing here is read by a shell.
"""

import json
import re
from collections.abc import Mapping, Sequence

from mqctl.core import headers
from mqctl.core.errors import BadData
from mqctl.core.message import Delivery

_PLACEHOLDER = re.compile(rb"\{(topic|partition|id|key|group|attempt)\}")
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9]")


def arguments(template: Sequence[bytes], delivery: Delivery) -> list[bytes]:
    """Return the command line: placeholders replaced in all but the program.

    Each argument is read once, from left to right: what was put in is not looked
    at again, any other brace stays. A message without key has an empty `{key}`.
    The program's name is taken as it stands: data must not choose what runs.
    """
    message = delivery.message
    values = {
        b"topic": encoded(message.topic),
        b"partition": b"%d" % message.partition,
        b"id": encoded(message.id),
        b"key": message.key or b"",
        b"group": encoded(delivery.group),
        b"attempt": b"%d" % delivery.attempt,
    }
    program, *rest = template
    return [program, *(_PLACEHOLDER.sub(lambda m: values[m[1]], a) for a in rest)]


def variables(delivery: Delivery) -> dict[bytes, bytes]:
    """Return the `MQ_` variables; MQ_KEY is absent when there is no key.

    MQ_HEADERS is a JSON object in ASCII. Of headers whose names become the same
    variable the later wins. Raises BadData for a value with a NUL byte, which no
    environment can hold.
    """
    message = delivery.message
    told = headers.application(message.headers)
    texts = {
        "MQ_TOPIC": message.topic,
        "MQ_PARTITION": str(message.partition),
        "MQ_ID": message.id,
        "MQ_ORIGINAL_ID": message.original_id,
        "MQ_GROUP": delivery.group,
        "MQ_CONSUMER": delivery.consumer,
        "MQ_ATTEMPT": str(delivery.attempt),
        "MQ_MAX_ATTEMPTS": str(delivery.limit + 1),
        "MQ_TIMESTAMP_MS": str(message.ts_ms),
        "MQ_HEADERS": json.dumps(told, separators=(",", ":")),
        **{_variable(name): value for name, value in told.items()},
    }
    values = {encoded(name): encoded(value) for name, value in texts.items()}
    if message.key is not None:
        values[b"MQ_KEY"] = message.key
    for name, value in values.items():
        if b"\0" in value:
            raise BadData(f"{name.decode()} would hold a NUL byte")
    return values


def inheritable(environ: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the environment without what an outer handler was told of its message.

    Only what a message may lack need be dropped: the rest is always set anew.
    """
    return {
        name: value
        for name, value in environ.items()
        if name != b"MQ_KEY" and not name.startswith(b"MQ_HEADER_")
    }


def encoded(text: str) -> bytes:
    """Return the text as UTF-8; bytes that came in undecoded go out as they were.

    Any other lone surrogate becomes `?`.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _variable(header: str) -> str:
    return "MQ_HEADER_" + _NOT_A_NAME.sub("_", header).upper()
