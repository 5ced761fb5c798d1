"""Histograms: three digits at any size, whoever counted."""

from hypothesis import given
from hypothesis import strategies as st

from mqctl.core.histogram import Histogram

VALUES = st.lists(st.integers(0, 10**12), min_size=1, max_size=200)


def histogram(values: list[int]) -> Histogram:
    made = Histogram()
    made.record(values)
    return made


@given(VALUES, st.integers(1, 1000))
def test_a_percentile_is_the_exact_one_or_at_most_a_thousandth_more(
    values: list[int], rank: int
) -> None:
    exact = sorted(values)[-(-len(values) * rank // 1000) - 1]

    found = histogram(values).permille(rank)

    assert found is not None
    assert exact <= found <= exact + exact / 1000


@given(VALUES)
def test_the_largest_value_is_exact(values: list[int]) -> None:
    assert histogram(values).permille(1000) == max(values)


@given(VALUES, VALUES)
def test_two_histograms_add_up_to_the_one_of_all_values(
    some: list[int], others: list[int]
) -> None:
    added = histogram(some)
    added.add(histogram(others))

    assert added == histogram(some + others)


@given(VALUES)
def test_values_below_2048_are_counted_exactly(values: list[int]) -> None:
    small = [value % 2048 for value in values]

    assert dict(histogram(small).counts) == {v: small.count(v) for v in small}


def test_nothing_counted_has_no_percentile() -> None:
    assert Histogram().permille(500) is None
