import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.core import ids
from mqctl.core.errors import BadUsage
from mqctl.core.positions import END, START, Position, parse_position

NOW = 1_700_000_000_000
MAX = 2**64 - 1


@pytest.mark.parametrize("text", ["start", "0", "-"])
def test_the_start_has_three_names(text: str) -> None:
    assert parse_position(text, NOW) == START == Position("0-0", "-", "-")


@pytest.mark.parametrize("text", ["end", "$", "+"])
def test_the_end_has_three_names(text: str) -> None:
    assert parse_position(text, NOW) == END == Position("$", "+", "+")


def test_a_group_goes_on_behind_an_id_and_a_range_includes_it() -> None:
    assert parse_position("5-3", NOW) == Position("5-3", "5-3", "5-3")


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("@1700000000000", NOW),
        ("@2023-11-14T22:13:20Z", NOW),
        ("@2023-11-14t22:13:20z", NOW),
        ("@2023-11-14T23:13:20.500+01:00", NOW + 500),
        ("@2023-11-14T22:13:20.000001Z", NOW + 1),
        ("-2h", NOW - 7_200_000),
        ("-1h30m", NOW - 5_400_000),
        ("-0", NOW),
    ],
)
def test_a_time_means_the_first_entry_at_or_after_it(text: str, ms: int) -> None:
    assert parse_position(text, NOW) == Position(
        f"{ms - 1}-{MAX}", f"{ms}-0", f"{ms}-{MAX}"
    )


@pytest.mark.parametrize("text", ["@0", "@1969-01-01T00:00:00Z", "-30000d"])
def test_a_time_before_all_entries_is_the_start(text: str) -> None:
    assert parse_position(text, NOW).after == "0-0"


@given(st.integers(min_value=0, max_value=MAX), st.integers(min_value=0, max_value=MAX))
def test_an_entry_is_delivered_when_it_is_not_older(at: int, ms: int) -> None:
    position = parse_position(f"@{at}", NOW)
    delivered = (ms, 1) > ids.parse(position.after)
    assert delivered == (ms >= at)
    assert delivered == ((ms, 1) >= ids.parse(position.first))


def test_the_newest_entries_are_counted_in_the_whole_stream() -> None:
    assert parse_position("last:10", NOW) == Position("0-0", "-", "+", 10)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "5", "1-", "-x", "@", "@x", "last:", "last:x", "last:-1", "last:٣"),
        "1-99999999999999999999",
        "@" + "9" * 40,
        "@" + "9" * 5000,
        "last:" + "9" * 5000,
    ],
)
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(BadUsage):
        parse_position(text, NOW)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("1700000000000", "did you mean @1700000000000 or 1700000000000-0?"),
        ("@2026-01-02", "did you mean @2026-01-02T00:00:00Z?"),
        ("@2026-01-02T03:04", "did you mean @2026-01-02T03:04:00Z?"),
        ("-2", "did you mean 2s?"),
        ("last:ten", "did you mean last:10?"),
    ],
)
def test_a_position_that_could_be_meant_is_asked_back(text: str, hint: str) -> None:
    with pytest.raises(BadUsage) as caught:
        parse_position(text, NOW)
    assert caught.value.hint == hint
