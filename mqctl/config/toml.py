"""Writing the flat TOML that mqctl keeps; `tomllib` reads it back to the same."""

import re
from collections.abc import Mapping
from itertools import pairwise

from mqctl.config.values import Value

Tables = Mapping[str, Mapping[str, Value]]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def document(current: str | None, profiles: Tables) -> str:
    """Return a whole file; the same content gives the same text."""
    lines = [] if current is None else [f"current = {_text(current)}"]
    for name in sorted(profiles):
        values = profiles[name]
        lines += ["", header(name)]
        lines += [assignment(key, values[key]) for key in sorted(values)]
    return "\n".join(lines).lstrip("\n") + "\n"


def header(profile: str) -> str:
    """Return the line that opens a profile's table."""
    return f"[profiles.{_key(profile)}]"


def assignment(key: str, value: Value) -> str:
    """Return the line that sets a key."""
    return f"{_key(key)} = {_value(value)}"


def edited(text: str, profile: str | None, key: str, value: Value | None) -> str:
    """Return the text with one line changed, comments and order kept; None removes.

    `profile` of None means the lines before the first table. The result is a guess
    where the text is not written as we write it: compare what it says.
    """
    lines = text.splitlines()
    start, end = _table(lines, profile)
    if start is None:
        if lines and lines[-1]:
            lines.append("")
        lines.append(header(profile or ""))
        start = end = len(lines)
    at = next((n for n in range(start, end) if _sets(lines[n], key)), None)
    new = [] if value is None else [assignment(key, value)]
    if at is not None:
        lines[at : at + 1] = new
    else:
        while end > start and not lines[end - 1].strip():
            end -= 1
        lines[end:end] = new
    return "\n".join(lines) + "\n"


def _table(lines: list[str], profile: str | None) -> tuple[int | None, int]:
    """Return where the lines of a table begin and end; None when there is none."""
    opens = [n for n, line in enumerate(lines) if line.lstrip().startswith("[")]
    if profile is None:
        return 0, opens[0] if opens else len(lines)
    wanted = header(profile)
    for at, following in pairwise([*opens, len(lines)]):
        if lines[at].partition("#")[0].strip() == wanted:
            return at + 1, following
    return None, len(lines)


def _sets(line: str, key: str) -> bool:
    return line.partition("=")[0].strip() == key and "=" in line


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return _text(value) if isinstance(value, str) else str(value)


def _text(text: str) -> str:
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return char if char.isprintable() else f"\\U{ord(char):08x}"
