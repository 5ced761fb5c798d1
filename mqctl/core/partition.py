"""Which partition a message goes to: the Java library's rule, bit for bit."""

import re
from random import Random

_INT = re.compile(r"([+-]?)(\d+)\Z")
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_LONGEST = 10  # digits of a 32-bit number


def java_hash(text: str) -> int:
    """Return Java's `String.hashCode`: h = 31·h + unit over UTF-16 units, 32 bit."""
    value = 0
    if text.isascii():
        for unit in text.encode("ascii"):
            value = (31 * value + unit) & 0xFFFFFFFF
    else:
        raw = text.encode("utf-16-be", "surrogatepass")
        for i in range(0, len(raw), 2):
            value = (31 * value + (raw[i] << 8 | raw[i + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def key_partition(key: bytes, count: int) -> int:
    """Return floor-mod of the key's Java hash.

    A key that is not UTF-8 is hashed as Java would read it: each bad sequence as
    U+FFFD.
    """
    if count <= 1:
        return 0
    return java_hash(key.decode("utf-8", "replace")) % count


def forced_partition(text: str, count: int) -> int | None:
    """Return floor-mod of a force-partition header, None where Java ignores it.

    Java reads an optional sign and decimal digits of any script, one UTF-16 unit
    each, with as many leading zeros as there are, in the range of 32 bits.
    """
    found = _INT.match(text)
    if not found or max(text) > "\uffff":
        return None
    digits = "".join(str(int(digit)) for digit in found[2]).lstrip("0")
    if len(digits) > _LONGEST:
        return None
    number = int(f"{found[1]}{digits or 0}")
    if not _INT_MIN <= number <= _INT_MAX:
        return None
    return number % count if count > 0 else 0


def choose(key: bytes | None, count: int, forced: str | None, random: Random) -> int:
    """Return the partition: forced header, else the key, else uniformly at random."""
    if count <= 0:
        return 0
    if forced is not None:
        number = forced_partition(forced, count)
        if number is not None:
            return number
    if key is None:
        return random.randrange(count)
    return key_partition(key, count)
