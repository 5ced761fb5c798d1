"""Stream entry ids: `milliseconds-sequence`."""

import re

_ID = re.compile(r"([0-9]{1,20})-([0-9]{1,20})\Z")
_MAX = 2**64 - 1


def parse(text: str) -> tuple[int, int]:
    """Return (ms, seq), which order as Redis orders ids; ValueError if it is none."""
    found = _ID.match(text)
    if not found:
        raise ValueError(text)
    ms, seq = int(found[1]), int(found[2])
    if ms > _MAX or seq > _MAX:
        raise ValueError(text)
    return ms, seq


def before(text: str) -> str:
    """Return the largest id below `text` (`0-0` for `0-0`)."""
    ms, seq = parse(text)
    if seq:
        return f"{ms}-{seq - 1}"
    return f"{ms - 1}-{_MAX}" if ms else "0-0"


def after(text: str) -> str:
    """Return the smallest id above `text`; ValueError when there is none."""
    ms, seq = parse(text)
    if seq < _MAX:
        return f"{ms}-{seq + 1}"
    if ms == _MAX:
        raise ValueError(text)
    return f"{ms + 1}-0"
