"""What becomes of a delivery: attempts, limits and the verdict on a result.

An attempt is a handler started, this time included. A limit is the number of retries
after the first attempt, so limit + 1 attempts are allowed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from mqctl.core import backoff
from mqctl.core.handler import Outcome, Result


@dataclass(frozen=True, slots=True)
class Ack:
    """Handled: acknowledge it."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Store it again with this retry count, due in `delay_ms`, then acknowledge."""

    retry_count: int
    delay_ms: int


@dataclass(frozen=True, slots=True)
class Dead:
    """Write a dead letter, then acknowledge. `reason` is one word."""

    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """Give it back as if it had never been started."""


@dataclass(frozen=True, slots=True)
class Defer:
    """Leave it pending until its receipt is settled."""


Verdict = Ack | Retry | Dead | Release | Defer


def attempts_made(retry_count: int, deliveries: int) -> int:
    """Return the attempts that lie behind an entry.

    `retry_count` were settled as retries; of the `deliveries` Redis counts, all but
    the first are starts that never ended.
    """
    return max(0, retry_count) + max(0, deliveries - 1)


def limit(max_retries: int | None, retry_max: int) -> int:
    """Return the lower of the message's limit, if it has one, and the consumer's.

    Never negative: a message nobody has started is not exhausted.
    """
    allowed = retry_max if max_retries is None else min(max_retries, retry_max)
    return max(0, allowed)


def on_takeover(retry_count: int, deliveries: int, *, limit: int) -> int | Dead:
    """Return the number of the attempt that may start now.

    For an entry taken over from another consumer or an earlier run: Dead when the
    starts that never ended have used up the limit.
    """
    made = attempts_made(retry_count, deliveries)
    if made > limit:
        return Dead("handler-killed", f"attempt {made} was started and never ended")
    return made + 1


def decide(
    result: Result,
    *,
    attempt: int,
    limit: int,
    base_ms: int,
    cap_ms: int,
    schedule: Sequence[int] = (),
) -> Verdict:
    """Return what becomes of a delivery whose `attempt` ended with `result`.

    `limit` is what `limit()` returned; `base_ms`, `cap_ms` or `schedule` give the
    backoff. An
    explicit delay of the result counts, 0 too, and below 0 is 0.
    """
    match result.outcome:
        case Outcome.SUCCESS:
            return Ack()
        case Outcome.DEAD | Outcome.FAIL:
            return Dead(result.reason or "rejected", result.detail)
        case Outcome.RETRY if attempt > limit:
            return Dead("exhausted", result.detail or result.reason or "")
        case Outcome.RETRY:
            delay = result.delay_ms
            if delay is None:
                delay = backoff.delay_ms(attempt, base_ms, cap_ms, schedule)
            return Retry(attempt, max(0, delay))
        case Outcome.RELEASE:
            return Release()
        case Outcome.DEFER:
            return Defer()
        case _:
            assert_never(result.outcome)
