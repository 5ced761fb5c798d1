"""Durations, sizes and rates as people write them, and back."""

import re
from math import gcd

from mqctl.core.errors import BadUsage

_DURATION = re.compile(
    r"(?:([0-9]{1,10})d)?(?:([0-9]{1,10})h)?(?:([0-9]{1,10})m)?"
    r"(?:([0-9]{1,10})s)?(?:([0-9]{1,10})ms)?"
)
_DURATION_UNITS = (
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
)
_SIZE = re.compile(r"([0-9]{1,15})([A-Za-z]+)")
_SIZE_UNITS = {
    "TiB": 2**40,
    "TB": 10**12,
    "GiB": 2**30,
    "GB": 10**9,
    "MiB": 2**20,
    "MB": 10**6,
    "KiB": 2**10,
    "KB": 10**3,
    "B": 1,
}
_UNIT_OF = {name.lower(): size for name, size in _SIZE_UNITS.items()}
_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)/s")


def duration_ms(text: str) -> int:
    """Return milliseconds of `250ms 10s 5m 2h 7d 1h30m`; `0` needs no unit.

    Units go from large to small, each once, in whole numbers. BadUsage otherwise.
    """
    if text == "0":
        return 0
    found = _DURATION.fullmatch(text)
    if found and text:
        parts = zip(found.groups("0"), _DURATION_UNITS, strict=True)
        return sum(int(count) * size for count, (_, size) in parts)
    if _is_number(text):
        raise BadUsage(
            f"a duration needs a unit: {text}", hint=f"did you mean {text}s?"
        )
    raise BadUsage(
        f"not a duration: {text}", hint="write 250ms, 10s, 5m, 2h, 7d or 1h30m"
    )


def short_duration(ms: int) -> str:
    """Write milliseconds exactly, as `duration_ms` reads them: `1h30m`, `250ms`, `0`.

    A negative one gets a minus sign in front, which `duration_ms` does not take.
    """
    if ms < 0:
        return f"-{short_duration(-ms)}"
    text = ""
    for name, size in _DURATION_UNITS:
        count, ms = divmod(ms, size)
        if count:
            text += f"{count}{name}"
    return text or "0"


def coarse(ms: int) -> int:
    """Drop what a reader does not miss: at most two units are left.

    Above ten seconds whole seconds, above an hour minutes, above a day hours;
    always towards zero.
    """
    size = abs(ms)
    for least, step in (
        (86_400_000, 3_600_000),
        (3_600_000, 60_000),
        (10_000, 1000),
    ):
        if size >= least:
            size -= size % step
            break
    return size if ms >= 0 else -size


def size_bytes(text: str) -> int:
    """Return the bytes of `100B 64KB 1MiB` (KB = 1000, KiB = 1024), in any case.

    `0` needs no unit. BadUsage for anything else.
    """
    if text == "0":
        return 0
    found = _SIZE.fullmatch(text)
    unit = _UNIT_OF.get(found[2].lower()) if found else None
    if found and unit:
        return int(found[1]) * unit
    if _is_number(text):
        raise BadUsage(f"a size needs a unit: {text}", hint=f"did you mean {text}KB?")
    if found and found[2].upper() in {"K", "M", "G", "T"}:
        hint = f"did you mean {found[1]}{found[2].upper()}B?"
        raise BadUsage(f"not a size: {text}", hint=hint)
    raise BadUsage(f"not a size: {text}", hint="write 100B, 64KB, 1MiB or 0")


def short_size(count: int) -> str:
    """Write bytes exactly, in the largest unit that divides them: `64KB`, `1MiB`."""
    if count == 0:
        return "0"
    unit = next(
        name
        for name, size in sorted(_SIZE_UNITS.items(), key=lambda item: -item[1])
        if gcd(count, size) == size
    )
    return f"{count // _SIZE_UNITS[unit]}{unit}"


def rate(text: str) -> float:
    """Return the N of `N/s`, above 0, with up to three decimals. BadUsage otherwise."""
    found = _RATE.fullmatch(text)
    per_second = float(found[1]) if found else 0.0
    if per_second > 0:
        return per_second
    if _is_number(text) and text.strip("0"):
        raise BadUsage(f"a rate needs a unit: {text}", hint=f"did you mean {text}/s?")
    raise BadUsage(f"not a rate: {text}", hint="write a number above 0 and /s: 500/s")


def grouped(number: int) -> str:
    """Write a whole number with commas: `1,234,567`."""
    return f"{number:,}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
