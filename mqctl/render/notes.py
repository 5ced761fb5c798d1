"""What goes to standard error, and how text is made safe for a terminal."""

import json
import re

import orjson

from mqctl.core.errors import Fact, MqError

# Controls, bidirectional overrides and marks, line separators, the byte order mark,
# and surrogates: what moves the cursor, reorders the line or cannot be written.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
    "\ud800-\udfff]"
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_HINT = "hint: "


def escape(text: str) -> str:
    r"""Return text as a terminal may show it: `\n`, `\x1b`, `\u202e`; one line.

    Bytes that came in as surrogates are shown as bytes. All other Unicode stays, and
    a backslash too: this is for reading, not for reading back.
    """
    return _UNSAFE.sub(_escaped, text)


def escape_bytes(raw: bytes) -> str:
    r"""Return bytes as a terminal may show them: UTF-8, the rest as `\xff`."""
    return escape(raw.decode("utf-8", "backslashreplace"))


def error_line(error: MqError) -> str:
    """Return `mqctl: what failed: facts`, then `hint: …` on a line of its own.

    Facts whose text the message has already are not repeated. A hint may have more
    lines, which stay aligned. No newline at the end.
    """
    parts = [f"mqctl: {escape(error.message)}"]
    facts = ", ".join(
        f"{name.replace('_', ' ')} {text}"
        for name, text in _facts(error)
        if text not in error.message
    )
    if facts:
        parts.append(escape(facts))
    lines = [": ".join(parts)]
    if error.hint:
        indents = (_HINT, *(" " * len(_HINT) for _ in error.hint))
        hints = zip(indents, error.hint.split("\n"), strict=False)
        lines += [indent + escape(line) for indent, line in hints]
    return "\n".join(lines)


def error_object(error: MqError) -> bytes:
    """Return the error as one JSON line for programs."""
    return json_bytes(
        {
            "error": {
                "code": error.code,
                "exit": error.exit,
                "message": error.message.replace("\n", " "),
                "hint": error.hint,
                "facts": error.facts,
            }
        }
    ) + (b"\n")


def note(text: str) -> str:
    """Return a line for the person at the terminal, without its newline."""
    return f"mqctl: {escape(text)}"


def json_bytes(value: object, *, indent: bool = False) -> bytes:
    r"""Return compact JSON, or indented by two.

    What orjson refuses is written all the same: integers of more than 64 bits, and
    names that are not UTF-8, whose surrogates become `\udcff`.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None)
    except TypeError:
        separators = (",", ": " if indent else ":")
        text = json.dumps(value, separators=separators, indent=2 if indent else None)
        return text.encode()


def _escaped(found: re.Match[str]) -> str:
    sign = found[0]
    code = ord(sign)
    if 0xDC80 <= code <= 0xDCFF:  # noqa: PLR2004 - a byte from the surrogateescape
        code -= 0xDC00
    if code <= 0xFF:  # noqa: PLR2004
        return _SHORT.get(sign, f"\\x{code:02x}")
    return f"\\u{code:04x}"


def _facts(error: MqError) -> list[tuple[str, str]]:
    return [(name, _fact(value)) for name, value in error.facts.items()]


def _fact(value: Fact) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(_fact_item(item) for item in value)
    return str(value)


def _fact_item(item: str | int | list[int]) -> str:
    if isinstance(item, list):
        return "-".join(str(number) for number in item)
    return str(item)
