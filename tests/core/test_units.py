import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.core.errors import BadUsage
from mqctl.core.units import (
    coarse,
    duration_ms,
    grouped,
    rate,
    short_duration,
    short_size,
    size_bytes,
)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("250ms", 250),
        ("10s", 10_000),
        ("5m", 300_000),
        ("2h", 7_200_000),
        ("7d", 604_800_000),
        ("1h30m", 5_400_000),
        ("1d1ms", 86_400_001),
        ("0", 0),
        ("0s", 0),
    ],
)
def test_a_duration_is_read_in_milliseconds(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize(
    "text", ["", "x", "-5s", "1.5s", "30m1h", "5m5m", "10S", " 1s", "1s\n", "٣s", "³s"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadUsage, match="not a duration") as caught:
        duration_ms(text)
    assert "1h30m" in str(caught.value.hint)


def test_a_bare_number_is_refused_with_the_unit_it_may_lack() -> None:
    with pytest.raises(BadUsage) as caught:
        duration_ms("10")
    assert caught.value.hint == "did you mean 10s?"
    with pytest.raises(BadUsage) as caught:
        size_bytes("64")
    assert caught.value.hint == "did you mean 64KB?"
    with pytest.raises(BadUsage) as caught:
        rate("500")
    assert caught.value.hint == "did you mean 500/s?"


@given(st.integers(min_value=0, max_value=10**10 * 86_400_000 - 1))
def test_a_duration_reads_back_as_it_was_written(ms: int) -> None:
    assert duration_ms(short_duration(ms)) == ms


def test_a_negative_duration_is_written_with_a_minus() -> None:
    assert short_duration(-5000) == "-5s"


@given(st.integers(min_value=-(2**50), max_value=2**50))
def test_a_coarse_duration_is_close_and_has_at_most_two_units(ms: int) -> None:
    rough = coarse(ms)
    assert abs(rough) <= abs(ms)
    assert abs(ms - rough) * 10 < max(abs(ms), 1)
    assert rough * ms >= 0
    assert sum(c.isalpha() for c in short_duration(rough).replace("ms", "m")) <= 2


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("64KB", 64_000),
        ("1MiB", 1_048_576),
        ("100B", 100),
        ("1kib", 1024),
        ("2gb", 2 * 10**9),
        ("0", 0),
    ],
)
def test_a_size_is_read_in_bytes(text: str, count: int) -> None:
    assert size_bytes(text) == count


@pytest.mark.parametrize("text", ["", "KB", "1.5MB", "-1KB", "1XB", "1 KB", "64K"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(BadUsage, match="not a size"):
        size_bytes(text)


def test_a_size_with_half_a_unit_is_asked_back() -> None:
    with pytest.raises(BadUsage) as caught:
        size_bytes("64k")
    assert caught.value.hint == "did you mean 64KB?"


@given(
    st.integers(min_value=0, max_value=10**14)
    | st.integers(min_value=0, max_value=10**5).map(lambda n: n * 1024)
    | st.integers(min_value=0, max_value=10**5).map(lambda n: n * 1000)
)
def test_a_size_reads_back_as_it_was_written(count: int) -> None:
    assert size_bytes(short_size(count)) == count


def test_a_size_is_written_in_the_largest_unit_that_divides_it() -> None:
    sizes = [64_000, 1_048_576, 1_234_567, 10**9, 0]
    assert [short_size(n) for n in sizes] == ["64KB", "1MiB", "1234567B", "1GB", "0"]


def test_a_rate_is_a_number_per_second() -> None:
    assert rate("500/s") == 500
    assert rate("0.5/s") == 0.5


@pytest.mark.parametrize("text", ["", "0/s", "0", "-1/s", "5/m", "x/s", "nan/s"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(BadUsage, match="not a rate"):
        rate(text)


def test_numbers_are_grouped_by_thousands() -> None:
    assert grouped(1_234_567) == "1,234,567"
