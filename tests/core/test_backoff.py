"""Backoff doubles up to its cap and never overflows."""

from hypothesis import given
from hypothesis import strategies as st

from mqctl.core.backoff import delay_ms

times = st.integers(-10, 10**12)


def test_the_defaults_double_from_one_second_to_one_minute() -> None:
    delays = [delay_ms(retry, 1000, 60_000) for retry in range(1, 9)]
    assert delays == [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]


def test_the_retry_at_which_64_bits_would_overflow_waits_for_the_cap() -> None:
    assert [delay_ms(n, 1000, 60_000) for n in (54, 55, 56, 10**6)] == [60_000] * 4


def test_a_cap_below_the_base_is_the_base() -> None:
    assert delay_ms(1, 500, 100) == delay_ms(9, 500, 100) == 500


@given(st.integers(1, 200), times, times)
def test_the_delay_is_the_formula_s(retry: int, base: int, cap: int) -> None:
    base_ms = max(0, base)
    expected = min(base_ms * 2 ** (retry - 1), max(base_ms, cap))
    assert delay_ms(retry, base, cap) == expected


@given(st.integers(-5, 10**6), times, times)
def test_the_delay_never_falls_is_never_negative_and_ends_at_the_cap(
    retry: int, base: int, cap: int
) -> None:
    delay, following = delay_ms(retry, base, cap), delay_ms(retry + 1, base, cap)
    assert 0 <= delay <= following <= max(base, cap, 0)
