"""The Python API against a real server."""

from collections import Counter
from collections.abc import Iterator
from threading import Event, Lock
from typing import Any

import pytest

from mqctl import Client, Outcome, Result, connect
from mqctl.core.errors import BadUsage, NotFound
from mqctl.core.filters import Filter
from mqctl.core.message import Delivery
from tests.support.server import Server
from tests.support.wait import wait_until

QUICK: dict[str, Any] = {"lease_ttl": "1s", "renew": "200ms", "retry_base": 20}


@pytest.fixture
def mq(redis: Server) -> Iterator[Client]:
    with connect(redis.url) as client:
        yield client


def test_what_is_sent_is_stored_in_its_java_form(mq: Client, redis: Server) -> None:
    sent = [
        mq.producer(partitions=1).send("t", payload, key="k")
        for payload in ("text", None, {"a": [1, "é"]}, 7, True, b"\xff")
    ]

    entries = redis.call("XRANGE", "stream:topic:t:p:0", "-", "+")
    stored = [dict(zip(f[::2], f[1::2], strict=True))[b"payload"] for _, f in entries]
    assert stored == [b"text", b"", '{"a":[1,"é"]}'.encode(), b"7", b"true", b'"/w=="']
    assert [s.id for s in sent] == [i.decode() for i, _ in entries]


@pytest.mark.parametrize(
    ("payload", "wrong"),
    [
        ({"x": float("nan")}, TypeError),
        ({1: 2}, TypeError),
        ({"x": b"bytes"}, TypeError),
        ("\ud83d", BadUsage),
    ],
)
def test_a_batch_with_something_impossible_sends_nothing(
    mq: Client, redis: Server, payload: Any, wrong: type[Exception]
) -> None:
    with pytest.raises(wrong):
        mq.producer().send_many("t", ["fine", payload])

    assert redis.call("XLEN", "stream:topic:t:p:0") == 0


@pytest.mark.parametrize("value", [None, True, 1.5])
def test_headers_are_text(mq: Client, value: Any) -> None:
    with pytest.raises(TypeError, match="header 'a' must be text"):
        mq.producer().send("t", "x", headers={"a": value})


def test_handlers_decide_and_are_told(mq: Client, redis: Server) -> None:
    mq.producer().send_many("t", ["ok", "retry", "dead", "raise"])
    seen: Counter[bytes] = Counter()
    succeeded: list[bytes] = []
    dead: list[tuple[bytes, str]] = []

    def handle(delivery: Delivery) -> Outcome | Result | None:
        body = delivery.message.payload
        seen[body] += 1
        if body == b"dead":
            return Result(Outcome.DEAD, reason="broken")
        if body == b"raise" and delivery.attempt < 3:
            raise RuntimeError(body)
        return Outcome.RETRY if body == b"retry" else None

    consumer = mq.consumer(idle_exit="400ms", retry_max=2, **QUICK)
    consumer.subscribe(
        "t",
        handle,
        "g",
        on_success=lambda d: succeeded.append(d.message.payload),
        on_dead=lambda _, body, reason: dead.append((body, reason)),
    )
    summary = consumer.run()

    assert seen == {b"ok": 1, b"dead": 1, b"retry": 3, b"raise": 3}
    assert sorted(succeeded) == [b"ok", b"raise"]
    assert sorted(dead) == [(b"dead", "broken"), (b"retry", "exhausted")]
    assert (summary.acked, summary.dead) == (2, 2)
    assert redis.call("XPENDING", "stream:topic:t:p:0", "g")[0] == 0


def test_two_groups_are_two_subscriptions_and_end_one_by_one(mq: Client) -> None:
    got: Counter[str] = Counter()
    lock = Lock()

    def count(delivery: Delivery) -> None:
        with lock:
            got[delivery.group] += 1

    producer = mq.producer()
    producer.send("t", "1")
    consumer = mq.consumer(**QUICK)
    consumer.subscribe("t", count, "a")
    consumer.subscribe("t", count, "b")
    with pytest.raises(BadUsage):
        consumer.subscribe("t", count, "a")
    with consumer:
        consumer.start()
        wait_until(lambda: got == {"a": 1, "b": 1}, "both groups")
        consumer.unsubscribe("t", "a")
        with pytest.raises(NotFound):
            consumer.unsubscribe("t", "a")
        producer.send("t", "2")
        wait_until(lambda: got["b"] == 2, "the other group")
        assert consumer.running
    assert got["a"] == 1
    assert (consumer.running, consumer.closed) == (False, True)


def test_a_paused_consumer_takes_nothing_until_it_goes_on(mq: Client) -> None:
    got: list[bytes] = []
    consumer = mq.consumer(**QUICK)
    consumer.subscribe("t", lambda d: got.append(d.message.payload), "g")
    producer = mq.producer()
    producer.send("t", "1")
    with consumer:
        consumer.start()
        wait_until(lambda: len(got) == 1, "the first")
        consumer.pause()
        consumer.pause()
        producer.send("t", "2")
        assert consumer.paused
        consumer.resume()
        wait_until(lambda: len(got) == 2, "the second")


def test_reassigning_lets_go_after_the_message_in_hand(
    mq: Client, redis: Server
) -> None:
    hold, begun = Event(), Event()

    def wait(_: Delivery) -> None:
        begun.set()
        hold.wait(20)

    producer = mq.producer(partitions=4)
    producer.send("t", "x", partition=1)
    consumer = mq.consumer(**QUICK)
    consumer.subscribe("t", wait, "g")

    def leases() -> set[int]:
        keys = {i: f"streaming:mq:lease:t:g:{i}" for i in range(4)}
        return {i for i, key in keys.items() if redis.call("EXISTS", key)}

    with consumer:
        consumer.start()
        begun.wait(20)
        wait_until(lambda: leases() == {0, 1, 2, 3}, "all partitions")
        assert consumer.reassign("t", 2, 0)
        wait_until(lambda: leases() == {0, 1, 2}, "the idle one is let go")
        assert consumer.in_flight == 1
        hold.set()
        wait_until(lambda: leases() == {0, 2}, "the other one too")
    assert not consumer.reassign("nope", 2, 0)
    assert redis.call("XPENDING", "stream:topic:t:p:1", "g")[0] == 0


def test_deferred_messages_stay_pending(mq: Client, redis: Server) -> None:
    mq.producer().send("t", "x")
    consumer = mq.consumer(idle_exit="300ms", **QUICK)
    consumer.subscribe("t", lambda _: Outcome.DEFER, "g")

    consumer.run()

    assert redis.call("XPENDING", "stream:topic:t:p:0", "g")[0] == 1


def test_filters_options_and_metrics_reach_the_engine(redis: Server) -> None:
    told: Counter[str] = Counter()
    with connect(redis.url, metrics=lambda name, *_: told.update([name])) as mq:
        mq.producer().send_many("t", ["a"])
        mq.producer().send("t", "b", key="k")
        got: list[bytes] = []
        consumer = mq.consumer(idle_exit=300, **QUICK)
        consumer.subscribe(
            "t", lambda d: got.append(d.message.payload), "g", where=Filter(key="k")
        )
        consumer.run()
        with pytest.raises(TypeError, match="unknown option: leese_ttl"):
            mq.consumer(leese_ttl=3)

    assert got == [b"b"]
    assert told["redis_streaming_mq_produced_total"] == 2
    assert told["redis_streaming_mq_consumed_total"] == 1
