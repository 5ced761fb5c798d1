"""How long a failed message waits before its next attempt."""

from collections.abc import Sequence


def delay_ms(
    retry: int, base_ms: int, cap_ms: int, schedule: Sequence[int] = ()
) -> int:
    """Return min(base·2^(retry-1), cap) for the retry-th retry (1 = first).

    With a schedule its retry-th delay instead, the last one for all that follow.

    The Java library's exponential policy (`wire-format` §6.2) without its
    overflow: the cap is applied before the power can grow.
    """
    if schedule and retry >= 1:
        return schedule[min(retry, len(schedule)) - 1]
    base = max(0, base_ms)
    cap = max(base, cap_ms)
    if base == 0 or retry < 1:
        return 0
    doublings = retry - 1
    if doublings >= (cap // base).bit_length():
        return cap
    return min(base << doublings, cap)
