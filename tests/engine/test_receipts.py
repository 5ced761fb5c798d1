"""Settling by receipt: ownership of the entry decides, not any lease."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from mqctl.codecs import dead_letter, native
from mqctl.core.errors import NotFound
from mqctl.core.handler import Outcome
from mqctl.core.message import DeadLetter, Message
from mqctl.core.receipts import Receipt
from mqctl.engine.producer import Producer
from mqctl.engine.receipts import Order, Settler
from mqctl.engine.session import Session
from mqctl.store.url import parse_url
from tests.support.server import Server

GROUP = "g"
ACK, RETRY, DEAD = Outcome.SUCCESS, Outcome.RETRY, Outcome.DEAD


@dataclass
class Counter:
    """A topic of one partition whose entries were handed to a consumer that left."""

    server: Server
    session: Session
    topic: str

    def hand_out(self, *payloads: bytes, **given: Any) -> list[Receipt]:
        producer = Producer(self.session, self.topic)
        for payload in payloads:
            producer.add(payload, b"k", {}, None, given.get("max_retries", 3), 0)
        producer.drain()
        stream, call = self.stream, self.server.call
        if not call("EXISTS", stream) or not call("XINFO", "GROUPS", stream):
            call("XGROUP", "CREATE", stream, GROUP, "0", "MKSTREAM")
        ((_, entries),) = call(
            "XREADGROUP", "GROUP", GROUP, "left", "STREAMS", stream, ">"
        )
        return [
            Receipt(self.topic, 0, entry.decode(), GROUP, "left", 1)
            for entry, _ in entries
        ]

    @property
    def stream(self) -> str:
        return self.session.keys.partition(self.topic, 0)

    def settle(self, receipts: list[Receipt], *order: Any) -> list[str]:
        return Settler(self.session).settle(receipts, Order(*order))

    def pending(self) -> int:
        return int(self.server.call("XPENDING", self.stream, GROUP)[0])

    def stored(self) -> list[Message]:
        return [
            native.decode(self.topic, 0, entry.decode(), flat)
            for entry, flat in self.server.call("XRANGE", self.stream, "-", "+")
        ]

    def dead(self) -> list[DeadLetter]:
        rows = self.server.call("XRANGE", self.session.keys.dlq(self.topic), "-", "+")
        return [dead_letter.decode(self.topic, i.decode(), flat) for i, flat in rows]

    def waiting(self) -> list[tuple[bytes, int]]:
        key = self.session.keys.retries(self.topic)
        flat = self.server.call("ZRANGE", key, 0, -1, "WITHSCORES")
        return [(i, int(s)) for i, s in zip(flat[::2], flat[1::2], strict=True)]


@pytest.fixture(params=["script", "script on a cluster", "steps"])
def counter(request: pytest.FixtureRequest) -> Iterator[Counter]:
    alone = request.param == "script"
    server = request.getfixturevalue("redis" if alone else "cluster_redis")
    topic = "{orders}" if request.param == "script on a cluster" else "orders"
    session = Session.open(parse_url(server.url, tls=None))
    yield Counter(server, session, topic)
    session.close()


def test_acknowledged_is_done_once_and_already_after(counter: Counter) -> None:
    receipts = counter.hand_out(b"1", b"2")
    assert counter.settle(receipts, ACK) == ["done", "done"]
    assert counter.settle(receipts, ACK) == ["already", "already"]
    assert counter.pending() == 0


def test_the_same_receipt_twice_in_one_go(counter: Counter) -> None:
    (receipt,) = counter.hand_out(b"1")
    assert counter.settle([receipt, receipt], RETRY, 0) == ["done", "already"]
    assert [m.payload for m in counter.stored()] == [b"1", b"1"]


@pytest.mark.parametrize("order", [(ACK,), (RETRY, 0), (RETRY, 60_000), (DEAD,)])
def test_what_somebody_else_has_now_is_lost(counter: Counter, order: Any) -> None:
    taken, renewed, held = counter.hand_out(b"1", b"2", b"3")
    call = counter.server.call
    call("XCLAIM", counter.stream, GROUP, "other", 0, taken.id, "JUSTID")
    call("XCLAIM", counter.stream, GROUP, "left", 0, renewed.id)
    results = counter.settle([taken, renewed, held], *order)
    assert results == ["lost", "lost", "done"]
    assert counter.pending() == 2


@pytest.mark.parametrize("order", [(ACK,), (RETRY, 0), (DEAD,)])
def test_no_lease_is_needed(counter: Counter, order: Any) -> None:
    receipts = counter.hand_out(b"1")
    lease = counter.session.keys.lease(counter.topic, GROUP, 0)
    counter.server.call("SET", lease, "other")
    assert counter.settle(receipts, *order) == ["done"]
    assert counter.server.call("GET", lease) == b"other"


def test_a_retry_without_delay_is_appended_for_its_group(counter: Counter) -> None:
    (receipt,) = counter.hand_out(b"\xff\x00")
    assert counter.settle([receipt], RETRY, 0) == ["done"]
    again = counter.stored()[1]
    assert (again.payload, again.key, again.retry_count) == (b"\xff\x00", b"k", 1)
    assert again.retry_group == GROUP
    assert again.original_id == receipt.id


@pytest.mark.parametrize(("delay", "least"), [(60_000, 60_000), (None, 900)])
def test_a_later_retry_waits_by_its_delay_or_the_backoff(
    counter: Counter, delay: int | None, least: int
) -> None:
    (receipt,) = counter.hand_out(b"1")
    before = counter.session.clock.now_ms()
    assert counter.settle([receipt], RETRY, delay) == ["done"]
    ((item, due),) = counter.waiting()
    assert due >= before + least
    fields = counter.server.call("HGETALL", item)
    assert fields[fields.index(b"payload") + 1] == b"1"


def test_the_last_attempt_makes_a_retry_a_dead_letter(counter: Counter) -> None:
    receipts = counter.hand_out(b"1", max_retries=0)
    assert counter.settle(receipts, RETRY, 0, "too late") == ["done"]
    (letter,) = counter.dead()
    death = letter.death
    assert (death.reason, death.detail, death.attempts) == ("exhausted", "too late", 1)
    assert len(counter.stored()) == 1


def test_a_dead_letter_tells_who_gave_up_and_why(counter: Counter) -> None:
    receipts = counter.hand_out(b"1", b"2")
    assert counter.settle(receipts[:1], DEAD) == ["done"]
    assert counter.settle(receipts[1:], DEAD, None, "wrong currency") == ["done"]
    first, second = counter.dead()
    assert first.death.reason == "manual"
    assert second.death.reason == "wrong currency"
    assert (second.death.group, second.death.consumer) == (GROUP, "left")
    assert (second.death.attempts, second.last_id) == (1, receipts[1].id)


def test_starts_that_never_ended_count_as_attempts(counter: Counter) -> None:
    (receipt,) = counter.hand_out(b"1")
    counter.server.call(
        *("XCLAIM", counter.stream, GROUP, "left", 0, receipt.id),
        *("RETRYCOUNT", 3, "JUSTID"),
    )
    assert counter.settle([replace(receipt, deliveries=3)], RETRY, 0) == ["done"]
    assert counter.stored()[1].retry_count == 3


@pytest.mark.parametrize("order", [(ACK,), (RETRY, 0), (DEAD,)])
def test_what_does_not_exist_is_not_found_and_hides_no_other(
    counter: Counter, order: Any
) -> None:
    (receipt,) = counter.hand_out(b"1")
    strange = [
        replace(receipt, topic="no-such-topic"),
        replace(receipt, group="no-such-group"),
        replace(receipt, partition=7),
    ]
    results = counter.settle([*strange, receipt], *order)
    assert results == ["not_found", "not_found", "not_found", "done"]
    assert counter.server.call("KEYS", "*no-such*") == []


def test_an_entry_without_a_body_cannot_be_written_again(counter: Counter) -> None:
    (receipt,) = counter.hand_out(b"1")
    counter.server.call("XDEL", counter.stream, receipt.id)
    assert counter.settle([receipt], RETRY, 0) == ["not_found"]
    assert counter.settle([receipt], ACK) == ["done"]


@pytest.mark.parametrize("order", [(RETRY, 0), (RETRY, 60_000), (DEAD,)])
def test_a_body_aside_goes_with_the_message(counter: Counter, order: Any) -> None:
    receipts = counter.hand_out(b"x" * 70_000)
    assert counter.settle(receipts, *order) == ["done"]
    bodies = [m.payload for m in counter.stored()[1:]]
    bodies += [letter.message.payload for letter in counter.dead()]
    for item, _ in counter.waiting():
        fields = counter.server.call("HGETALL", item)
        bodies.append(fields[fields.index(b"payload") + 1])
    assert bodies == [b"x" * 70_000]


@pytest.mark.parametrize("order", [(RETRY, 0), (DEAD,)])
def test_a_body_that_is_gone_makes_a_dead_letter_that_says_so(
    counter: Counter, order: Any
) -> None:
    receipts = counter.hand_out(b"x" * 70_000)
    ref = counter.stored()[0].payload_ref
    counter.server.call("DEL", ref)
    assert counter.settle(receipts, *order) == ["done"]
    (letter,) = counter.dead()
    assert letter.death.reason == "payload-missing"
    assert letter.message.headers["x-payload-missing-ref"] == ref
    assert len(counter.stored()) == 1


def test_a_server_in_trouble_is_an_error_and_not_a_result(counter: Counter) -> None:
    receipts = counter.hand_out(b"1")
    counter.server.call("SET", counter.session.keys.dlq(counter.topic), "no stream")
    with pytest.raises(Exception, match="WRONGTYPE") as caught:
        counter.settle(receipts, DEAD)
    assert not isinstance(caught.value, NotFound)
    assert counter.pending() == 1


def test_nothing_to_settle(counter: Counter) -> None:
    assert counter.settle([], ACK) == []
