"""Clocks follow the server; times are printed in one form."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.core.clock import ManualClock, SystemClock, rfc3339

HOUR = 3_600_000


def test_a_clock_that_follows_the_server_shows_the_server_s_time() -> None:
    clock = SystemClock()
    server = clock.now_ms() - HOUR
    clock.follow(server)
    assert 0 <= clock.now_ms() - server < 60_000
    clock.follow(clock.now_ms() + 2 * HOUR)
    assert 0 <= clock.now_ms() - (server + 2 * HOUR) < 120_000


def test_following_the_server_leaves_the_monotonic_clock_alone() -> None:
    clock = SystemClock()
    first = clock.monotonic()
    clock.follow(0)
    assert 0 <= clock.monotonic() - first < 60


@given(st.integers(0, 10**7))
def test_a_manual_clock_moves_both_readings_alike(ms: int) -> None:
    clock = ManualClock(ms=1000, seconds=5.0)
    clock.advance(ms / 1000)
    assert clock.now_ms() == 1000 + ms
    assert clock.monotonic() == 5.0 + ms / 1000


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_767_323_045_678, "2026-01-02T03:04:05.678Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_times_are_printed_in_utc_with_milliseconds(ms: int, text: str) -> None:
    assert rfc3339(ms) == text


@pytest.mark.parametrize("ms", [253_402_300_800_000, -62_135_596_800_001, 10**30])
def test_a_time_no_calendar_holds_is_printed_as_a_number(ms: int) -> None:
    assert rfc3339(ms) == f"@{ms}"


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_a_printed_time_reads_back_as_itself(ms: int) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    moment = datetime.fromisoformat(rfc3339(ms))
    assert (moment - epoch) // timedelta(milliseconds=1) == ms
