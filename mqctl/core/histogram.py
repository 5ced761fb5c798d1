"""Latencies counted as an HDR histogram counts them.

Values keep three significant digits at any size: below 2048 they are exact, above
that each is counted as the largest value of its bucket, at most 0.1 % higher. What
two processes counted adds up to what one would have counted.

The published `hdrhistogram` package is not used: it draws in setuptools, and has no
wheels for Linux on ARM, where it would need a compiler.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

_DIGITS = 11  # binary ones: 2048 buckets, then 1024 for each doubling


@dataclass(slots=True)
class Histogram:
    """Counts of whole numbers of 0 and above; `largest` is exact."""

    counts: Counter[int] = field(default_factory=Counter)
    largest: int = 0

    def record(self, values: Iterable[int]) -> None:
        """Count values."""
        listed = list(values)
        self.counts.update(map(bucket, listed))
        self.largest = max(self.largest, max(listed, default=0))

    def add(self, other: "Histogram") -> None:
        """Count all that another histogram has counted."""
        self.counts.update(other.counts)
        self.largest = max(self.largest, other.largest)

    def permille(self, rank: int) -> int | None:
        """Return the value that `rank` of 1000 values do not exceed, None of none."""
        wanted = -(-self.counts.total() * rank // 1000)
        passed = 0
        for value in sorted(self.counts):
            passed += self.counts[value]
            if passed >= wanted:
                return min(value, self.largest)
        return None


def bucket(value: int) -> int:
    """Return the largest value that is counted together with this one."""
    extra = value.bit_length() - _DIGITS
    return value | ((1 << extra) - 1) if extra > 0 else value
