"""Values of settings: which are allowed, how text becomes one, what may be shown."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from mqctl.core import units
from mqctl.core.errors import BadConfig, BadUsage

Value = str | int | bool | list[str]

_SHAPES: dict[str, tuple[type, str]] = {
    "number": (int, "a whole number"),
    "switch": (bool, "true or false"),
    "list": (list, "a list of texts"),
}
_UNITS: dict[str, Callable[[str], object]] = {
    "duration": units.duration_ms,
    "size": units.size_bytes,
    "rate": units.rate,
}
_WORDS = {"true": True, "yes": True, "on": True, "1": True}
_WORDS |= {"false": False, "no": False, "off": False, "0": False}


@dataclass(frozen=True, slots=True)
class Kind:
    """What values a setting takes; a duration, size or rate is text with a unit."""

    name: Literal["text", "number", "switch", "list", "duration", "size", "rate"]
    choices: tuple[str, ...] = ()


def check(key: str, kind: Kind, value: object) -> Value:
    """Return a value of a profile as its option takes it; BadConfig when it cannot.

    A whole number is taken for a text too: `partition = 2`.
    """
    shape, expected = _SHAPES.get(kind.name, (str, "a text in quotes"))
    if shape is str and type(value) is int:
        value = str(value)
    if type(value) is not shape or (
        isinstance(value, list) and not all(isinstance(item, str) for item in value)
    ):
        raise BadConfig(f"{key} must be {expected}, not {_shown(value)}")
    if kind.choices and value not in kind.choices:
        raise BadConfig(f"{key} must be one of {' '.join(kind.choices)}, not {value}")
    if kind.name in _UNITS:
        try:
            _UNITS[kind.name](str(value))
        except BadUsage as error:
            raise BadConfig(f"{key}: {error.message}", hint=error.hint) from None
    return value  # type: ignore[return-value]  # its type has just been compared


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, (int, float, str)) else "a table or list"


def read(key: str, kind: Kind, texts: list[str]) -> Value:
    """Return the value that words of a command line mean; BadConfig when they cannot.

    Only a list takes other than one word.
    """
    _check_utf8(key, texts)
    if kind.name == "list":
        return list(texts)
    if len(texts) != 1:
        raise BadConfig(f"{key} takes one value, not {len(texts)}")
    (text,) = texts
    if kind.name == "switch":
        value: Value | None = _WORDS.get(text.lower())
        if value is None:
            raise BadConfig(f"{key} must be true or false, not {text}")
        return value
    if kind.name == "number":
        if not re.fullmatch(r"-?[0-9]{1,18}", text):
            raise BadConfig(f"{key} must be a whole number, not {text}")
        return int(text)
    return check(key, kind, text)


def _check_utf8(key: str, texts: list[str]) -> None:
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise BadConfig(f"{key}: the value is not valid UTF-8") from None


def has_password(url: str) -> bool:
    """Tell whether a password stands in a URL."""
    return masked(url) != url


def masked(text: str) -> str:
    """Return a URL with `***` for its password, also when it was not encoded."""
    text = re.sub(r"(://[^:@]*:).*@", r"\1***@", text, flags=re.DOTALL)
    return re.sub(r"([?&]pass\w*=)[^&]*", r"\1***", text)
