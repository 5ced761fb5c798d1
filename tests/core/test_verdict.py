"""The verdict on a delivery, over all inputs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.core import verdict
from mqctl.core.handler import Outcome, Result
from mqctl.core.verdict import (
    Ack,
    Dead,
    Defer,
    Release,
    Retry,
    Verdict,
    attempts_made,
    decide,
    on_takeover,
)

counts = st.integers(0, 10**6)
results = st.builds(
    Result,
    outcome=st.sampled_from(list(Outcome)),
    delay_ms=st.none() | st.integers(-10, 10**9),
    reason=st.none() | st.text(max_size=8),
    detail=st.text(max_size=8),
)


def after(result: Result, *, attempt: int = 1, limit: int = 3) -> Verdict:
    return decide(result, attempt=attempt, limit=limit, base_ms=1000, cap_ms=60_000)


@pytest.mark.parametrize(
    ("retry_count", "deliveries", "made"),
    [(0, 1, 0), (0, 0, 0), (0, 3, 2), (2, 1, 2), (2, 2, 3), (-1, 1, 0)],
)
def test_attempts_are_retries_plus_starts_that_never_ended(
    retry_count: int, deliveries: int, made: int
) -> None:
    assert attempts_made(retry_count, deliveries) == made


@pytest.mark.parametrize(
    ("of_message", "of_consumer", "limit"),
    [(None, 5, 5), (3, 5, 3), (5, 3, 3), (0, 5, 0), (-1, 5, 0), (None, -1, 0)],
)
def test_the_limit_is_the_lower_of_those_given(
    of_message: int | None, of_consumer: int, limit: int
) -> None:
    assert verdict.limit(of_message, of_consumer) == limit


def test_a_message_that_kills_its_consumers_dies_after_its_last_attempt() -> None:
    # Limit 2: three starts are allowed; the fourth taker finds three without an end.
    assert [on_takeover(0, n, limit=2) for n in (1, 2, 3)] == [1, 2, 3]
    dead = on_takeover(0, 4, limit=2)
    assert isinstance(dead, Dead)
    assert dead.reason == "handler-killed"


def test_what_was_only_prefetched_by_a_dead_consumer_never_ages() -> None:
    assert on_takeover(0, 1, limit=0) == 1
    assert on_takeover(3, 1, limit=3) == 4


@given(counts, counts, st.integers(0, 100))
def test_a_take_over_starts_within_the_allowed_attempts_or_kills(
    retry_count: int, deliveries: int, limit: int
) -> None:
    answer = on_takeover(retry_count, deliveries, limit=limit)
    if isinstance(answer, int):
        assert answer == attempts_made(retry_count, deliveries) + 1 <= limit + 1
    else:
        assert attempts_made(retry_count, deliveries) >= limit + 1


def test_success_release_and_defer_are_what_they_say() -> None:
    assert after(Result(Outcome.SUCCESS)) == Ack()
    assert after(Result(Outcome.RELEASE), attempt=99) == Release()
    assert after(Result(Outcome.DEFER), attempt=99) == Defer()


def test_a_rejection_is_dead_at_once_with_the_handler_s_reason_if_any() -> None:
    assert after(Result(Outcome.DEAD)) == Dead("rejected")
    assert after(Result(Outcome.DEAD, reason="")) == Dead("rejected")
    assert after(Result(Outcome.FAIL, reason="fraud", detail="x")) == Dead("fraud", "x")


def test_three_retries_follow_the_first_attempt_and_then_it_is_exhausted() -> None:
    failed = Result(Outcome.RETRY, detail="exit 1")
    assert [after(failed, attempt=n) for n in (1, 2, 3, 4)] == [
        Retry(1, 1000),
        Retry(2, 2000),
        Retry(3, 4000),
        Dead("exhausted", "exit 1"),
    ]


def test_without_retries_the_first_failure_is_the_last() -> None:
    assert after(Result(Outcome.RETRY), limit=0) == Dead("exhausted")


@pytest.mark.parametrize(("asked", "given_"), [(0, 0), (7, 7), (-5, 0), (None, 2000)])
def test_the_handler_s_own_delay_replaces_the_backoff(
    asked: int | None, given_: int
) -> None:
    assert after(Result(Outcome.RETRY, delay_ms=asked), attempt=2) == Retry(2, given_)


@given(results, counts, st.integers(0, 100), st.integers(), st.integers())
def test_every_result_has_a_verdict_that_keeps_its_promises(
    result: Result, attempt: int, limit: int, base_ms: int, cap_ms: int
) -> None:
    answer = decide(
        result, attempt=attempt, limit=limit, base_ms=base_ms, cap_ms=cap_ms
    )
    if isinstance(answer, Retry):
        assert result.outcome is Outcome.RETRY
        assert answer.retry_count == attempt <= limit
        assert answer.delay_ms >= 0
    elif isinstance(answer, Dead):
        assert answer.reason
        assert result.outcome is Outcome.DEAD or attempt > limit
    else:
        expected = {Ack: "success", Release: "release", Defer: "defer"}
        assert expected[type(answer)] == result.outcome.value
