import select
from collections.abc import Iterator

import pytest

from mqctl.core.errors import HandlerBroken
from mqctl.core.handler import SUCCESS, Outcome, Result
from mqctl.core.message import Delivery, Message
from mqctl.engine.pool import Pool, Wake
from tests.support.sessions import Given
from tests.support.wait import wait_until


@pytest.fixture
def wake() -> Iterator[Wake]:
    made = Wake()
    yield made
    made.close()


def delivery(payload: bytes = b"x") -> Delivery:
    message = Message("t", 0, "1-0", payload, None, {}, "1970-01-01T00:00:00.001Z", 1)
    return Delivery(message, "g", "c", 1, 1, 3)


def test_an_answer_comes_back_with_its_slot_and_rings(wake: Wake) -> None:
    handler = Given()
    pool = Pool(handler, 2, wake, lambda: 0.0)
    given = delivery()
    pool.start(("t", 3), given)
    assert pool.free == 1
    handler.answers.put(SUCCESS)
    assert select.select([wake.fileno()], [], [], 5)[0]
    (answer,) = wait_until(pool.finished, "the answer")
    assert (answer.slot, answer.delivery, answer.result) == (("t", 3), given, SUCCESS)
    assert pool.free == 2
    pool.close()


def test_a_handler_that_cannot_start_gives_its_message_back(wake: Wake) -> None:
    handler = Given()
    handler.answers.put(HandlerBroken("no such program"))
    pool = Pool(handler, 1, wake, lambda: 0.0)
    pool.start(("t", 0), delivery())
    (answer,) = wait_until(pool.finished, "the answer")
    assert answer.result == Result(Outcome.RELEASE)
    assert str(answer.broken) == "no such program"
    pool.close()


def test_drain_and_kill_reach_the_handler(wake: Wake) -> None:
    handler = Given()
    pool = Pool(handler, 1, wake, lambda: 0.0)
    pool.drain()
    pool.kill()
    assert handler.heard == ["drain", "kill"]


def test_a_ring_before_the_wait_is_not_lost(wake: Wake) -> None:
    wake.ring()
    assert select.select([wake.fileno()], [], [], 0)[0]
    wake.clear()
    assert not select.select([wake.fileno()], [], [], 0)[0]


def test_any_number_of_rings_blocks_nobody_and_is_one(wake: Wake) -> None:
    for _ in range(500_000):
        wake.ring()
    wake.clear()
    assert not select.select([wake.fileno()], [], [], 0)[0]


def test_ringing_what_is_closed_is_no_error() -> None:
    wake = Wake()
    wake.close()
    wake.ring()
    assert wake.fileno() < 0
