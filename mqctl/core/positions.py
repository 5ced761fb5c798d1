"""Positions in a stream as people write them: an id, a time, an end, the newest N."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mqctl.core import ids, units
from mqctl.core.errors import BadUsage

_MAX = 2**64 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HINT = "write start, end, an id, @2026-01-02T03:04:05Z, @MS, -2h or last:N"


@dataclass(frozen=True, slots=True)
class Position:
    """One place in a stream, as each Redis command wants it.

    `after` is for XGROUP CREATE and SETID, exclusive: entries with greater ids are
    delivered. `first` and `to` are the bounds of an XRANGE, inclusive on both sides.

    | written | `after` | `first` | `to` |
    |---|---|---|---|
    | `start 0 -` | `0-0` | `-` | `-` |
    | `end $ +` | `$` | `+` | `+` |
    | id X | X | X | X |
    | time T, epoch ms | largest id before `T-0` | `T-0` | last id of T |
    | `last:N` | `0-0` | `-` | `+` |

    A group made at id X therefore goes on behind X, and a range from X shows X; a
    time means the first entry at or after it in both. With `last` set the position
    is relative to the end: the newest `last` entries of the whole stream.
    """

    after: str
    first: str
    to: str
    last: int | None = None


START = Position("0-0", "-", "-")
END = Position("$", "+", "+")
_WORDS = {"start": START, "0": START, "-": START, "end": END, "$": END, "+": END}


def parse_position(text: str, now_ms: int) -> Position:
    """Read a position; `now_ms` (epoch ms, the server's) is what `-2h` counts from.

    BadUsage when it is none. A time before 1970 is the start of the stream.
    """
    word = _WORDS.get(text)
    if word:
        return word
    if text.startswith("@"):
        return at(_moment(text[1:]))
    if text.startswith("-"):
        return at(now_ms - units.duration_ms(text[1:]))
    if text.startswith("last:"):
        return Position("0-0", "-", "+", _count(text[5:]))
    return _exact(text)


def at(ms: int) -> Position:
    """Return the position of the first entry at or after `ms`, epoch milliseconds."""
    if ms > _MAX:
        raise BadUsage(f"not a time a stream can hold: @{ms}")
    first = f"{max(ms, 0)}-0"
    return Position(ids.before(first), first, f"{max(ms, 0)}-{_MAX}")


def _exact(text: str) -> Position:
    try:
        ms, seq = ids.parse(text)
    except ValueError:
        hint = _HINT
        if _is_number(text):
            hint = f"did you mean @{text} or {text}-0?"
        raise BadUsage(f"not a position: {text}", hint=hint) from None
    entry = f"{ms}-{seq}"
    return Position(entry, entry, entry)


def _count(text: str) -> int:
    if not _is_number(text) or len(text) > len(str(_MAX)):
        raise BadUsage(f"not a count: last:{text}", hint="did you mean last:10?")
    return int(text)


def _moment(text: str) -> int:
    """Return epoch ms; what lies between two milliseconds counts as the later one."""
    if _is_number(text):
        return int(text[:30])
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        raise BadUsage(f"not a time: @{text}", hint=_HINT) from None
    if moment.tzinfo is None:
        hint = f"did you mean @{moment.isoformat()}Z?"
        raise BadUsage(f"a time needs its offset from UTC: @{text}", hint=hint)
    return -((_EPOCH - moment) // timedelta(milliseconds=1))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
