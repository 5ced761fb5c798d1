r"""Format strings: `%t %p %o` and the like, compiled once, rendered as bytes.

| token | |
|---|---|
| `%t` `%p` `%o` | topic, partition, id |
| `%k` `%s` | key, payload |
| `%K` `%S` | their lengths in bytes; `%K` is -1 without a key |
| `%T` | time, epoch ms |
| `%h` | the application's headers as a JSON object |
| `%h{NAME}` | one stored header, empty when it is not there |
| `%a` | attempt |
| `%g` `%c` | group and consumer, empty when there is none |
| `%x` | dead-letter reason, empty for others |
| `%e` | the envelope, without newline |
| `%%` | a percent sign |

`\n \t \r \0 \\ \xNN` are escapes. After a token `{json}`, `{base64}`, `{hex}` or
`{q}` (quoted for a shell) says how to write it. As JSON, numbers, headers and the
envelope stand as they are, what is absent is null, and bytes that are not UTF-8
become U+FFFD (`{base64}` loses nothing). No newline is added at the end.
"""

import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass

from mqctl.codecs import envelope
from mqctl.core import headers as h
from mqctl.core.errors import BadUsage
from mqctl.core.message import DeadLetter, Delivery, Message
from mqctl.render.notes import escape, json_bytes

Item = Delivery | Message | DeadLetter
Value = bytes | str | int | None
_Get = Callable[[Item], Value]
_Write = Callable[[Value], bytes]

_PIECE = re.compile(
    r"""
      (?P<plain> [^%\\]+ )
    | (?P<percent> %% )
    | % (?P<token> . ) (?: (?<=%h) \{ (?P<name> [^}]* ) \} )?
      (?: \{ (?P<as> [^}]* ) \} | (?P<open> \{ ) )?
    | \\ (?P<escape> x[0-9A-Fa-f]{2} | . )
    | (?P<stray> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_SHELL_UNSAFE = re.compile(rb"[^A-Za-z0-9_@%+=:,./-]")


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled format string."""

    parts: tuple[bytes | Callable[[Item], bytes], ...]

    def render(self, item: Item) -> bytes:
        """Return the item in this format."""
        return b"".join(
            [part if isinstance(part, bytes) else part(item) for part in self.parts]
        )


def compile_template(text: str) -> Template:
    """Compile a format string; BadUsage pointing at what is not known in it."""
    return Template(tuple(_part(text, piece) for piece in _PIECE.finditer(text)))


def message_of(item: Item) -> Message:
    """Return the message inside."""
    return item if isinstance(item, Message) else item.message


def attempt_of(item: Item) -> int:
    """Return which attempt this is, of a dead letter how many there were."""
    if isinstance(item, Delivery):
        return item.attempt
    if isinstance(item, DeadLetter):
        return item.death.attempts
    return item.retry_count + 1


def envelope_of(
    item: Item, *, receipt: bool = False, json_payload: bool = False
) -> bytes:
    """Return the envelope line of any of the three."""
    if isinstance(item, Delivery):
        return envelope.encode_delivery(
            item, receipt=receipt, json_payload=json_payload
        )
    if isinstance(item, DeadLetter):
        return envelope.encode_dead(item, json_payload=json_payload)
    return envelope.encode_message(item, json_payload=json_payload)


def _part(text: str, piece: re.Match[str]) -> bytes | Callable[[Item], bytes]:
    if piece["plain"]:
        return piece["plain"].encode("utf-8", "surrogateescape")
    if piece["percent"]:
        return b"%"
    if piece["escape"]:
        return _unescaped(text, piece)
    if piece["stray"]:
        raise _pointed(text, piece.start(), f"nothing after {piece['stray']}")
    return _token(text, piece)


def _unescaped(text: str, piece: re.Match[str]) -> bytes:
    sign = piece["escape"]
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    if len(sign) > 1:
        return bytes.fromhex(sign[1:])
    raise _pointed(text, piece.start(), f"unknown escape \\{sign}")


def _token(text: str, piece: re.Match[str]) -> bytes | Callable[[Item], bytes]:
    sign, name = piece["token"], piece["name"]
    get = _GETTERS.get(sign) if name is None else _header(name)
    if get is None:
        raise _pointed(text, piece.start(), f"unknown token %{sign}")
    if piece["open"]:
        raise _pointed(text, piece.start("open"), "brace not closed")
    style = piece["as"]
    as_it_is = style is None or (style == "json" and sign in "he" and name is None)
    write = _plain if as_it_is else _STYLES.get(style)
    if write is None:
        what = f"unknown {{{style}}} after %{sign}"
        raise _pointed(text, piece.start("as") - 1, what)
    return _joined(get, write)


def _joined(get: _Get, write: _Write) -> Callable[[Item], bytes]:
    return lambda item: write(get(item))


def _pointed(text: str, position: int, what: str) -> BadUsage:
    """Return the error with the text and a caret below what is wrong in it."""
    hint = f"{escape(text)}\n{' ' * len(escape(text[:position]))}^"
    return BadUsage(
        f"{what} in the format, at character {position + 1}",
        hint=hint,
        position=position + 1,
    )


# What the tokens stand for


def _header(name: str) -> _Get:
    return lambda item: message_of(item).headers.get(name)


def _headers(item: Item) -> bytes:
    return json_bytes(h.application(message_of(item).headers))


def _key_length(item: Item) -> int:
    key = message_of(item).key
    return -1 if key is None else len(key)


def _group(item: Item) -> str | None:
    if isinstance(item, Delivery):
        return item.group
    return item.death.group or None if isinstance(item, DeadLetter) else None


def _consumer(item: Item) -> str | None:
    if isinstance(item, Delivery):
        return item.consumer
    return item.death.consumer or None if isinstance(item, DeadLetter) else None


def _reason(item: Item) -> str | None:
    return item.death.reason if isinstance(item, DeadLetter) else None


_GETTERS: dict[str, _Get] = {
    "t": lambda item: message_of(item).topic,
    "p": lambda item: message_of(item).partition,
    "o": lambda item: message_of(item).id,
    "k": lambda item: message_of(item).key,
    "s": lambda item: message_of(item).payload,
    "S": lambda item: len(message_of(item).payload),
    "K": _key_length,
    "T": lambda item: message_of(item).ts_ms,
    "h": _headers,
    "a": attempt_of,
    "g": _group,
    "c": _consumer,
    "x": _reason,
    "e": lambda item: envelope_of(item)[:-1],
}

# How they are written


def _plain(value: Value) -> bytes:
    if isinstance(value, bytes):
        return value
    return b"" if value is None else str(value).encode("utf-8", "backslashreplace")


def _json(value: Value) -> bytes:
    if isinstance(value, bytes):
        return json_bytes(value.decode("utf-8", "replace"))
    return json_bytes(value)


def _quoted(value: Value) -> bytes:
    raw = _plain(value)
    if raw and not _SHELL_UNSAFE.search(raw):
        return raw
    return b"'" + raw.replace(b"'", b"'\"'\"'") + b"'"


_STYLES: dict[str, _Write] = {
    "json": _json,
    "base64": lambda value: b64encode(_plain(value)),
    "hex": lambda value: _plain(value).hex().encode(),
    "q": _quoted,
}
