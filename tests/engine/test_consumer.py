from collections.abc import Callable, Sequence

import pytest

from mqctl.core.errors import BadUsage, HandlerBroken, MqError, NotFound, OutputFailed
from mqctl.core.handler import SUCCESS, Outcome, Result
from mqctl.core.message import Delivery
from mqctl.core.options import ConsumerOptions, Summary
from mqctl.engine.consumer import Consumer
from tests.support.server import Server
from tests.support.sessions import (
    QUICK,
    Collecting,
    Given,
    add,
    running,
    session,
    topic,
)
from tests.support.wait import wait_until
from tests.support.worker import dead, lease, owners, pending, stream


def consume(server: Server, handler: Collecting | Given, **options: object) -> Summary:
    """Run a consumer of all there is to its end."""
    options = {"exit_when_empty": True, **options}
    with session(server) as opened:
        settings = ConsumerOptions(("t",), "g", **options)  # type: ignore[arg-type]
        return Consumer(opened, settings, handler=handler).run()


class Sink:
    """Takes so many messages at a time, then fails or asks `then` what to do."""

    def __init__(self, most: int = 10**9, error: Exception | None = None) -> None:
        self.most = most
        self.error = error
        self.written: list[str] = []
        self.then: Callable[[], None] = lambda: None

    def write(self, deliveries: Sequence[Delivery], alive: Callable[[], float]) -> int:
        alive()
        if self.error is not None:
            raise self.error
        taken = deliveries[: self.most]
        self.written += [d.message.payload.decode() for d in taken]
        self.then()
        return len(taken)


def print_all(server: Server, sink: Sink, **options: object) -> Summary:
    with session(server) as opened:
        settings = ConsumerOptions(("t",), "g", exit_when_empty=True, **options)  # type: ignore[arg-type]
        return Consumer(opened, settings, sink=sink).run()


# -- what it needs ------------------------------------------------------------


def test_it_needs_a_handler_or_a_sink_and_not_both(redis: Server) -> None:
    options = ConsumerOptions(("t",), "g")
    with session(redis) as opened:
        with pytest.raises(BadUsage):
            Consumer(opened, options)
        with pytest.raises(BadUsage):
            Consumer(opened, options, handler=Collecting(), sink=Sink())


def test_a_topic_that_is_not_there_is_an_error_only_when_it_is_to_end(
    redis: Server,
) -> None:
    with pytest.raises(NotFound):
        consume(redis, Collecting())
    assert redis.call("DBSIZE") == 0


# -- printing -----------------------------------------------------------------


def test_what_a_sink_took_is_acknowledged_and_the_rest_goes_out_next(
    redis: Server,
) -> None:
    topic(redis)
    for i in range(7):
        add(redis, str(i))
    sink = Sink(most=2)
    summary = print_all(redis, sink)
    assert sink.written == [str(i) for i in range(7)]
    assert (summary.received, summary.acked) == (7, 7)
    assert pending(redis, "t", 1) == 0


def test_what_a_sink_could_not_write_is_given_back(redis: Server) -> None:
    topic(redis)
    for i in range(3):
        add(redis, str(i))
    with pytest.raises(OutputFailed):
        print_all(redis, Sink(error=OutputFailed("full")))
    assert redis.call("EXISTS", lease("t", 0)) == 0
    again = Sink()
    assert print_all(redis, again).received == 3
    assert again.written == ["0", "1", "2"]


def test_a_reader_that_has_gone_is_no_error_but_is_remembered(redis: Server) -> None:
    topic(redis)
    add(redis, "x")
    with session(redis) as opened:
        consumer = Consumer(
            opened, ConsumerOptions(("t",), "g"), sink=Sink(error=BrokenPipeError())
        )
        consumer.run()
    assert isinstance(consumer.error, BrokenPipeError)
    assert pending(redis, "t", 1) == 1


def test_a_lease_lost_while_writing_is_not_acknowledged(redis: Server) -> None:
    topic(redis)
    add(redis, "x")
    sink = Sink()

    def steal() -> None:
        redis.call("SET", lease("t", 0), "other", "PX", 60_000)
        sink.then = lambda: None

    sink.then = steal
    with session(redis) as opened:
        options = ConsumerOptions(("t",), "g", max_time_ms=300)
        summary = Consumer(opened, options, sink=sink).run()
    assert pending(redis, "t", 1) == 1
    assert (summary.acked, summary.duplicates_possible) == (0, 1)
    assert owners(redis, "t", 1) == ["other"]


# -- working ------------------------------------------------------------------


def test_a_partition_is_handled_one_message_at_a_time_in_order(redis: Server) -> None:
    topic(redis)
    for i in range(3):
        add(redis, str(i))
    handler = Given()
    with running(redis, handler):
        for i in range(3):
            assert handler.started.get(timeout=5).message.payload == b"%d" % i
            assert handler.started.empty()
            handler.answers.put(SUCCESS)
        wait_until(lambda: pending(redis, "t", 1) == 0, "all settled")


def test_workers_bound_the_partitions_handled_at_the_same_time(redis: Server) -> None:
    topic(redis, partitions=3)
    for i in range(3):
        add(redis, str(i), partition=i)
    handler = Given()
    with running(redis, handler, workers=2):
        first = [handler.started.get(timeout=5) for _ in range(2)]
        assert handler.started.empty()
        handler.answers.put(SUCCESS)
        third = handler.started.get(timeout=5)
        assert {d.message.partition for d in [*first, third]} == {0, 1, 2}
        handler.answers.put(SUCCESS)
        handler.answers.put(SUCCESS)


def test_a_backlog_in_one_partition_does_not_starve_another(redis: Server) -> None:
    topic(redis, partitions=4)
    for i in range(200):
        add(redis, f"many {i}")
    add(redis, "one", partition=3)
    handler = Collecting()
    consume(redis, handler, workers=1)
    assert handler.payloads.index("one") <= 3


def test_a_start_is_counted_and_a_success_forgets_it(redis: Server) -> None:
    topic(redis)
    add(redis, "x")
    handler = Given()
    with running(redis, handler):
        assert handler.started.get(timeout=5).attempt == 1
        ((_, _, _, deliveries),) = redis.call(
            "XPENDING", stream("t", 0), "g", "-", "+", 9
        )
        assert deliveries == 2
        handler.answers.put(SUCCESS)
    assert pending(redis, "t", 1) == 0


def test_whatever_a_handler_raises_is_a_failure_of_its_message(redis: Server) -> None:
    topic(redis)
    errors = [RuntimeError("no"), SystemExit(3), KeyboardInterrupt(), RecursionError()]
    handler = Given()
    for error in errors:
        add(redis, "x")
        handler.answers.put(error)
    summary = consume(redis, handler, retry_max=0)
    assert summary.dead == len(errors)
    details = [headers["x-dead-detail"] for headers in dead(redis, "t")]
    assert details[0] == "RuntimeError: no"
    assert details[1].startswith("SystemExit")


def test_a_handler_that_cannot_start_ends_it_and_gives_all_back(redis: Server) -> None:
    topic(redis)
    add(redis, "x")
    add(redis, "y")
    handler = Given()
    handler.answers.put(HandlerBroken("no such program"))
    with pytest.raises(HandlerBroken):
        consume(redis, handler)
    rows = redis.call("XPENDING", stream("t", 0), "g", "IDLE", 10_000, "-", "+", 9)
    assert [deliveries for *_, deliveries in rows] == [1, 1]


def test_a_result_may_ask_to_stop(redis: Server) -> None:
    topic(redis)
    add(redis, "x")
    add(redis, "y")
    handler = Given()
    handler.answers.put(Result(Outcome.SUCCESS, stop=True))
    with session(redis) as opened:
        summary = Consumer(opened, ConsumerOptions(("t",), "g"), handler=handler).run()
    assert (summary.received, summary.acked) == (1, 1)


def test_a_released_message_is_not_counted_and_not_aged(redis: Server) -> None:
    topic(redis)
    add(redis, "x")
    handler = Given()
    with running(redis, handler) as consumer:
        handler.started.get(timeout=5)
        consumer.stop()
        wait_until(lambda: "drain" in handler.heard, "it drains")
        handler.answers.put(Result(Outcome.RELEASE))
    assert consumer.summary.received == 0
    ((_, _, idle, deliveries),) = redis.call(
        "XPENDING", stream("t", 0), "g", "-", "+", 9
    )
    assert deliveries == 1
    assert idle > 10_000_000


def test_a_partition_that_comes_back_waits_for_the_handler_that_still_runs(
    redis: Server,
) -> None:
    topic(redis)
    add(redis, "x")
    add(redis, "y")
    handler = Given()
    with running(redis, handler, **QUICK):
        assert handler.started.get(timeout=5).message.payload == b"x"
        redis.call("SET", lease("t", 0), "other", "PX", 1500)
        wait_until(lambda: owners(redis, "t", 1) == ["other"], "it is lost")
        wait_until(
            lambda: owners(redis, "t", 1) not in (["other"], [None]), "it is back"
        )
        assert handler.started.empty()
        handler.answers.put(SUCCESS)
        assert handler.started.get(timeout=5).message.payload == b"y"
        handler.answers.put(SUCCESS)
    assert handler.started.empty()
    assert pending(redis, "t", 1) == 0


# -- ending -------------------------------------------------------------------


def test_a_hard_stop_leaves_the_message_pending_with_its_start_counted(
    redis: Server,
) -> None:
    topic(redis)
    add(redis, "x")
    handler = Given()
    with running(redis, handler) as consumer:
        handler.started.get(timeout=5)
        consumer.stop(hard=True)
        wait_until(lambda: "kill" in handler.heard, "it kills")
    handler.answers.put(SUCCESS)
    assert not consumer.drained
    ((_, owner, _, deliveries),) = redis.call(
        "XPENDING", stream("t", 0), "g", "-", "+", 9
    )
    assert (owner.decode(), deliveries) == (consumer.name, 2)


def test_a_drain_that_takes_too_long_kills_and_gives_back(redis: Server) -> None:
    topic(redis)
    add(redis, "x")
    handler = Given()
    with running(redis, handler, drain_timeout_ms=100) as consumer:
        handler.started.get(timeout=5)
        consumer.stop()
        wait_until(lambda: "kill" in handler.heard, "it kills")
        handler.answers.put(Result(Outcome.RELEASE))
    assert not consumer.drained
    ((_, _, _, deliveries),) = redis.call("XPENDING", stream("t", 0), "g", "-", "+", 9)
    assert deliveries == 1
    assert owners(redis, "t", 1) == [None]


def test_a_draining_consumer_takes_no_partition_and_no_share(redis: Server) -> None:
    topic(redis, partitions=2)
    add(redis, "x")
    handler = Given()
    with running(redis, handler, **QUICK) as consumer:
        handler.started.get(timeout=5)
        wait_until(lambda: None not in owners(redis, "t", 2), "it has both")
        consumer.stop()
        wait_until(lambda: owners(redis, "t", 2)[1] is None, "the idle one is free")
        redis.call("DEL", "streaming:mq:members:g")
        wait_until(
            lambda: (
                redis.call("ZRANGE", "streaming:mq:members:g", 0, -1)
                == [f"0:-:{consumer.name}".encode()]
            ),
            "its name stays in use",
        )
        assert owners(redis, "t", 2) == [consumer.name, None]
        handler.answers.put(SUCCESS)
    assert redis.call("EXISTS", "streaming:mq:members:g") == 0


def test_an_error_of_the_engine_is_raised_after_all_is_given_back(
    redis: Server,
) -> None:
    topic(redis, partitions=2)
    add(redis, "x", partition=1)
    redis.call("SET", stream("t", 0), "not a stream")
    with pytest.raises(MqError):
        consume(redis, Collecting())
    assert owners(redis, "t", 2) == [None, None]
