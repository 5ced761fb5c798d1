"""Which messages are meant: by key, by header, by what the payload holds."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from mqctl.core.errors import BadUsage
from mqctl.core.message import Message


@dataclass(frozen=True, slots=True)
class Filter:
    """What a message must have, all of it; an empty filter takes every message.

    `key` and the headers' values are globs over the whole text. A message without a
    key, or without the header, does not match. `grep` is searched in the payload.
    """

    key: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    grep: re.Pattern[str] | None = None

    def __bool__(self) -> bool:
        return self != _ALL

    def takes(self, message: Message) -> bool:
        """Tell whether the message is one of those meant."""
        if self.key is not None and not (
            message.key is not None and fnmatchcase(_text(message.key), self.key)
        ):
            return False
        for name, pattern in self.headers:
            value = message.headers.get(name)
            if value is None or not fnmatchcase(value, pattern):
                return False
        return self.grep is None or bool(self.grep.search(_text(message.payload)))


_ALL = Filter()


def make_filter(
    key: str | None, headers: Sequence[str] = (), grep: str | None = None
) -> Filter:
    """Return the filter that options describe; headers are written NAME=GLOB.

    BadUsage for a header without `=` and for what is no regular expression.
    """
    pairs = []
    for text in headers:
        name, found, pattern = text.partition("=")
        if not found or not name:
            raise BadUsage(
                f"not a header pattern: {text}", hint="--where-header NAME=GLOB"
            )
        pairs.append((name, pattern))
    return Filter(key, tuple(pairs), None if grep is None else _expression(grep))


def like(text: str, pattern: str) -> bool:
    """Tell whether a glob matches the whole text, in any case."""
    return fnmatchcase(text.lower(), pattern.lower())


def _expression(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadUsage(f"not a regular expression: {text}: {error}") from None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
