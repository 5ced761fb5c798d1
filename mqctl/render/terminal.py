"""What standard output can show, decided from the environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

When = Literal["auto", "always", "never"]
_DEFAULT_WIDTH = 80


@dataclass(frozen=True, slots=True)
class Terminal:
    """How wide text may be (None: as wide as it wants) and whether to colour it."""

    width: int | None
    color: bool


def terminal(
    env: Mapping[str, str],
    *,
    isatty: bool,
    columns: int | None = None,
    when: When = "auto",
) -> Terminal:
    """Decide width and colour; `columns` is what the terminal itself reports.

    Width: none off a terminal, else COLUMNS, `columns`, 80. Colour, the first that
    speaks: `when`, NO_COLOR, FORCE_COLOR, TERM=dumb, whether it is a terminal. The
    two variables count when they are not empty.
    """
    width = _columns(env) or columns or _DEFAULT_WIDTH if isatty else None
    return Terminal(width, _color(env, isatty=isatty, when=when))


def _columns(env: Mapping[str, str]) -> int:
    text = env.get("COLUMNS", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0  # noqa: PLR2004


def _color(env: Mapping[str, str], *, isatty: bool, when: When) -> bool:
    if when != "auto":
        return when == "always"
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR"):
        return True
    return isatty and env.get("TERM") != "dumb"
