"""The retry bucket: what is due is moved once, what cannot be moved is kept."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from mqctl.codecs import native
from mqctl.core.clock import SystemClock
from mqctl.core.errors import OutOfMemory
from mqctl.core.message import Delivery, Message
from mqctl.core.options import ConsumerOptions
from mqctl.core.verdict import Retry
from mqctl.engine import retries
from mqctl.engine.mover import Mover
from mqctl.engine.retries import Moved
from mqctl.engine.session import Session
from mqctl.store.url import parse_url
from tests.support.server import Server

BODY = bytes(range(256))


@dataclass
class Bucket:
    """A topic's retry bucket."""

    server: Server
    session: Session
    topic: str

    def __post_init__(self) -> None:
        self.waiting = self.session.keys.retries(self.topic)
        self.call = self.server.call

    def message(self, payload: bytes = BODY, **given: Any) -> Message:
        fields: dict[str, Any] = {"partition": 0, "key": b"k", "headers": {"a": "b"}}
        fields |= given
        return Message(
            topic=self.topic,
            id="5-1",
            payload=payload,
            timestamp="2026-01-02T03:04:05Z",
            ts_ms=0,
            max_retries=3,
            **fields,
        )

    def put(self, name: str, in_ms: int, **given: Any) -> str:
        item = self.session.keys.retry_item(self.topic, name)
        fields = native.item_fields(self.message(**given), group="g", retry_count=2)
        self.call("HSET", item, *fields)
        self.call("ZADD", self.waiting, self.now() + in_ms, item)
        return item

    def now(self) -> int:
        seconds, micros = self.call("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    def stored(self, partition: int = 0) -> list[Message]:
        stream = self.session.keys.partition(self.topic, partition)
        return [
            native.decode(self.topic, partition, entry.decode(), flat)
            for entry, flat in self.call("XRANGE", stream, "-", "+")
        ]


@pytest.fixture(params=["script", "script on a cluster", "steps"])
def bucket(request: pytest.FixtureRequest) -> Iterator[Bucket]:
    alone = request.param == "script"
    server = request.getfixturevalue("redis" if alone else "cluster_redis")
    topic = "{orders}" if request.param == "script on a cluster" else "orders"
    session = Session.open(parse_url(server.url, tls=None))
    yield Bucket(server, session, topic)
    session.close()


def test_nothing_waits(bucket: Bucket) -> None:
    assert retries.move_due(bucket.session, bucket.topic) == Moved(
        0, None, [], more=False
    )


def test_what_is_due_goes_to_its_partition_with_bytes_count_and_group(
    bucket: Bucket,
) -> None:
    items = [bucket.put("a", -20), bucket.put("b", -10, partition=3, key=None)]
    assert retries.move_due(bucket.session, bucket.topic).moved == 2
    (first,), (second,) = bucket.stored(0), bucket.stored(3)
    assert (first.payload, first.key, first.retry_count) == (BODY, b"k", 2)
    assert first.retry_group == "g"
    assert first.original_id == "5-1"
    assert (second.partition, second.key) == (3, None)
    assert bucket.call("EXISTS", items[0]) == 0
    assert bucket.call("EXISTS", items[1]) == 0
    assert bucket.call("EXISTS", bucket.waiting) == 0


def test_what_is_not_due_stays_and_says_when(bucket: Bucket) -> None:
    bucket.put("a", 60_000)
    bucket.put("b", 90_000)
    done = retries.move_due(bucket.session, bucket.topic)
    assert done.moved == 0
    assert done.next_ms is not None
    assert 50_000 < done.next_ms <= 60_000
    assert bucket.stored() == []


def test_no_more_than_the_limit_and_oldest_first(bucket: Bucket) -> None:
    for n in range(5):
        bucket.put(str(n), n - 10, payload=b"%d" % n)
    done = retries.move_due(bucket.session, bucket.topic, 3)
    assert (done.moved, done.more) == (3, True)
    assert [m.payload for m in bucket.stored()] == [b"0", b"1", b"2"]
    done = retries.move_due(bucket.session, bucket.topic, 3)
    assert (done.moved, done.more) == (2, False)


def test_due_is_what_the_servers_clock_says(bucket: Bucket) -> None:
    bucket.put("a", 60_000)
    for skew in (-3_600_000, 3_600_000):
        clock = SystemClock()
        clock.offset_ms = skew
        bucket.session.clock = clock
        assert retries.move_due(bucket.session, bucket.topic).moved == 0


def test_an_item_whose_body_is_gone_is_forgotten(bucket: Bucket) -> None:
    item = bucket.put("a", -10)
    bucket.call("DEL", item)
    done = retries.move_due(bucket.session, bucket.topic)
    assert (done.moved, done.broken) == (0, [])
    assert bucket.call("EXISTS", bucket.waiting) == 0


def broken_items(bucket: Bucket) -> list[str]:
    keys, call = bucket.session.keys, bucket.call
    items = [keys.retry_item(bucket.topic, str(n)) for n in range(4)]
    call("HSET", items[0], "payload", BODY, "version", "9")
    call("HSET", items[1], "topic", bucket.topic, "partitionId", "nine")
    call("SET", items[2], "no hash")
    call("HSET", items[3], "topic", bucket.topic, "partitionId", "7")
    call("SET", keys.partition(bucket.topic, 7), "no stream")
    for item in items:
        call("ZADD", bucket.waiting, 1, item)
    return items


def test_what_cannot_be_moved_is_kept_told_and_in_nobodys_way(bucket: Bucket) -> None:
    broken = broken_items(bucket)
    bucket.put("good", -10)
    before = [bucket.call("DUMP", item) for item in broken]
    done = retries.move_due(bucket.session, bucket.topic, 5)
    assert done.moved == 1
    assert sorted(done.broken) == broken
    assert [bucket.call("DUMP", item) for item in broken] == before
    now = bucket.now()
    for item in broken:
        due = int(bucket.call("ZSCORE", bucket.waiting, item))
        assert now + 20_000 < due < now + 40_000


def test_a_full_server_keeps_every_item(bucket: Bucket) -> None:
    items = [bucket.put("a", -20), bucket.put("b", -10)]
    bucket.call("CONFIG", "SET", "maxmemory", 1)
    try:
        with pytest.raises(OutOfMemory):
            retries.move_due(bucket.session, bucket.topic)
    finally:
        bucket.call("CONFIG", "SET", "maxmemory", 0)
    assert bucket.call("ZRANGE", bucket.waiting, 0, -1) == [i.encode() for i in items]
    assert retries.move_due(bucket.session, bucket.topic).moved == 2


def test_six_movers_move_a_thousand_items_once_each(bucket: Bucket) -> None:
    for n in range(1000):
        bucket.put(str(n), -1, payload=b"%d" % n)
    gate = threading.Barrier(6)

    def move() -> None:
        session = Session.open(parse_url(bucket.server.url, tls=None))
        gate.wait(10)
        while retries.move_due(session, bucket.topic).more:
            pass
        session.close()

    threads = [threading.Thread(target=move) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    moved = sorted(int(m.payload) for m in bucket.stored())
    assert moved == list(range(1000))
    assert bucket.call("EXISTS", bucket.waiting) == 0


def test_what_waits_is_counted_and_listed(bucket: Bucket) -> None:
    assert retries.waiting(bucket.session, bucket.topic) == (0, 0, None)
    bucket.put("late", 60_000)
    bucket.put("due", -10)
    total, due, first = retries.waiting(bucket.session, bucket.topic)
    assert (total, due) == (2, 1)
    assert first is not None
    assert first < bucket.now()
    broken_items(bucket)
    found = [(i.item, i.payload) for i in retries.listed(bucket.session, bucket.topic)]
    keys = bucket.session.keys
    assert found == [
        (keys.retry_item(bucket.topic, "3"), b""),
        (keys.retry_item(bucket.topic, "due"), BODY),
        (keys.retry_item(bucket.topic, "late"), BODY),
    ]


# -- when it is done, and how a failed delivery becomes a retry ----------------


def mover(bucket: Bucket, notes: list[str], **given: int) -> Mover:
    options = ConsumerOptions((bucket.topic,), "g", **given)
    return Mover(bucket.session, options, notes.append)


def test_the_mover_comes_back_when_the_next_item_is_due(bucket: Bucket) -> None:
    bucket.put("a", -10)
    bucket.put("b", 300)
    made = mover(bucket, [], mover_interval_ms=60_000)
    now = bucket.session.clock.monotonic()
    assert made.tick([bucket.topic]) == 1
    assert now < made.next_timer <= bucket.session.clock.monotonic() + 0.31
    assert made.tick([bucket.topic]) == 0


def test_the_mover_comes_back_at_the_latest_after_its_interval(bucket: Bucket) -> None:
    made = mover(bucket, [], mover_interval_ms=5_000)
    made.tick([bucket.topic])
    clock = bucket.session.clock
    assert 4 < made.next_timer - clock.monotonic() <= 5
    made.expect(bucket.topic, 500)
    assert made.next_timer - clock.monotonic() <= 0.5
    made.tick([])
    made.expect(bucket.topic, 500)
    assert made.next_timer - clock.monotonic() > 0.9


def test_what_cannot_be_moved_is_told_once(bucket: Bucket) -> None:
    broken = broken_items(bucket)
    notes: list[str] = []
    made = mover(bucket, notes, mover_interval_ms=1)
    made.tick([bucket.topic])
    for item in broken:
        bucket.call("ZADD", bucket.waiting, 1, item)
    made.expect(bucket.topic, -1000)
    made.tick([bucket.topic])
    assert sorted(notes) == [
        f"retry item {item} cannot be moved: kept" for item in broken
    ]


def test_a_full_server_stops_no_consumer(bucket: Bucket) -> None:
    bucket.put("a", -10)
    notes: list[str] = []
    made = mover(bucket, notes)
    bucket.call("CONFIG", "SET", "maxmemory", 1)
    try:
        assert made.tick([bucket.topic]) == 0
        made.expect(bucket.topic, -1000)
        assert made.tick([bucket.topic]) == 0
    finally:
        bucket.call("CONFIG", "SET", "maxmemory", 0)
    assert len(notes) == 1
    assert "no memory" in notes[0]
    made.expect(bucket.topic, -1000)
    assert made.tick([bucket.topic]) == 1


@pytest.mark.parametrize(
    ("delay", "kind"), [(0, "again"), (50, "again"), (51, "later")]
)
def test_a_retry_due_at_once_is_appended_any_other_waits(
    bucket: Bucket, delay: int, kind: str
) -> None:
    delivery = Delivery(bucket.message(), "g", "me", 1, 1, 5)
    step = mover(bucket, []).step(delivery, Retry(1, delay))
    assert (step.kind, step.id) == (kind, "5-1")
    fields = dict(zip(step.fields[::2], step.fields[1::2], strict=True))
    assert fields[b"retryCount"] == b"1"
    assert fields[b"maxRetries"] == b"3"
    assert b'"x-retry-group":"g"' in fields[b"headers"]
    assert (step.item != "") == (kind == "later")
    assert step.delay_ms == (delay if kind == "later" else 0)
