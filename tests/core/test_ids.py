"""Entry ids order as Redis orders them."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mqctl.core.ids import after, before, parse

MAX = 2**64 - 1
halves = st.sampled_from([0, 1, MAX - 1, MAX]) | st.integers(0, MAX)
pairs = st.tuples(halves, halves)


def text(pair: tuple[int, int]) -> str:
    return f"{pair[0]}-{pair[1]}"


@given(pairs)
def test_an_id_is_read_as_the_pair_it_shows(pair: tuple[int, int]) -> None:
    assert parse(text(pair)) == pair


def test_ids_order_by_number_and_not_by_text() -> None:
    ids = ["9-10", "10-0", "9-9", "9-100", "0-1"]
    assert sorted(ids, key=parse) == ["0-1", "9-9", "9-10", "9-100", "10-0"]


@pytest.mark.parametrize(
    "bad",
    [
        *("", "1", "-", "1-", "-1", "1-2-3", "1--2", "+1-2", " 1-2", "1-2\n", "1-*"),
        *("$", ">", "٣-٤", f"{MAX + 1}-0", f"0-{MAX + 1}", "1" * 5000 + "-0"),
    ],
)
def test_what_is_no_id_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match=r"\A"):
        parse(bad)


@given(pairs)
def test_after_and_before_are_inverse(pair: tuple[int, int]) -> None:
    assume(pair != (MAX, MAX))
    assert before(after(text(pair))) == text(pair)
    if pair != (0, 0):
        assert after(before(text(pair))) == text(pair)


@given(pairs, pairs)
def test_nothing_lies_between_an_id_and_the_next(
    pair: tuple[int, int], other: tuple[int, int]
) -> None:
    assume(pair != (MAX, MAX))
    assert pair < parse(after(text(pair)))
    assert not pair < other < parse(after(text(pair)))


def test_the_ends_of_the_range() -> None:
    assert before("0-0") == "0-0"
    assert before("5-0") == f"4-{MAX}"
    assert after(f"5-{MAX}") == "6-0"
    with pytest.raises(ValueError, match="18446744073709551615"):
        after(f"{MAX}-{MAX}")
