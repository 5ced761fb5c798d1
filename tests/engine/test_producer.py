"""Producing: what the tally says is what the server has, whatever goes wrong."""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mqctl.codecs import native
from mqctl.core.errors import (
    BadUsage,
    MqError,
    NotFound,
    OutOfMemory,
    TooLarge,
    UnknownOutcome,
    Unreachable,
)
from mqctl.core.message import Message, Outgoing
from mqctl.core.partition import key_partition
from mqctl.engine import payloads
from mqctl.engine.producer import Producer, ProducerOptions, Sent, ranges
from mqctl.engine.session import Session
from mqctl.store.url import parse_url
from tests.support.proxy import Cut, Moment, Proxy
from tests.support.server import (
    Server,
    TestServer,
    short_directory,
    start_server,
)
from tests.support.worker import mqctl

TOPIC = "orders"


@dataclass
class Topic:
    """A topic as it stands on the server."""

    server: Server
    session: Session

    def producer(
        self, report: Callable[[list[Sent]], None] | None = None, **options: Any
    ) -> Producer:
        return Producer(self.session, TOPIC, ProducerOptions(**options), report=report)

    def entries(self, partition: int) -> list[Message]:
        stream = self.session.keys.partition(TOPIC, partition)
        return [
            native.decode(TOPIC, partition, entry.decode(), flat)
            for entry, flat in self.server.call("XRANGE", stream, "-", "+")
        ]

    def stored(self, partitions: int = 1) -> list[bytes]:
        return [m.payload for p in range(partitions) for m in self.entries(p)]

    def count(self) -> bytes | None:
        found = self.server.call(
            "HGET", self.session.keys.meta(TOPIC), "partitionCount"
        )
        return bytes(found) if found is not None else None


@pytest.fixture
def topic(redis: Server) -> Iterator[Topic]:
    session = Session.open(parse_url(redis.url, tls=None))
    yield Topic(redis, session)
    session.close()


def send(producer: Producer, payloads: list[bytes], key: bytes | None = None) -> None:
    for line, payload in enumerate(payloads, 1):
        producer.add(payload, key, {}, None, 3, line)


def send_all(producer: Producer, payloads: list[bytes]) -> None:
    send(producer, payloads)
    producer.drain()


def send_by_key(producer: Producer, keys: list[bytes]) -> None:
    for line, key in enumerate(keys, 1):
        producer.add(key, key, {}, None, 3, line)
    producer.drain()


def numbers(count: int, width: int = 4) -> list[bytes]:
    return [b"%0*d" % (width, n) for n in range(1, count + 1)]


# -- what is stored ------------------------------------------------------------


def test_everything_is_stored_in_order_and_counted(topic: Topic) -> None:
    told: list[Sent] = []
    producer = topic.producer(told.extend, batch=7)
    send(producer, numbers(100))
    producer.drain()
    assert topic.stored() == numbers(100)
    assert producer.tally.stored == 100
    assert [s.line for s in told] == list(range(1, 101))
    assert [s.id for s in told] == [m.id for m in topic.entries(0)]
    assert {s.status for s in told} == {"stored"}


def test_a_key_goes_to_its_partition_in_order(topic: Topic) -> None:
    producer = topic.producer(partitions=4, batch=3)
    for n in range(200):
        producer.add(b"%d" % n, b"key-%d" % (n % 10), {}, None, 3, 0)
    producer.drain()
    for partition in range(4):
        found = [(m.key, int(m.payload)) for m in topic.entries(partition)]
        assert {key_partition(key, 4) for key, _ in found if key} <= {partition}
        assert [n for _, n in found] == sorted(n for _, n in found)


def test_a_forced_partition_is_noted_in_the_entry(topic: Topic) -> None:
    producer = topic.producer(partitions=3)
    producer.send(Outgoing(b"p", key=b"k", partition=2, max_retries=9))
    producer.drain()
    (entry,) = topic.entries(2)
    assert entry.headers["x-force-partition-id"] == "2"
    assert entry.max_retries == 9
    for wrong in (-1, 3):
        with pytest.raises(BadUsage, match="out of range"):
            producer.send(Outgoing(b"p", partition=wrong))


def test_a_message_too_large_is_refused_before_any_of_it_is_sent(topic: Topic) -> None:
    producer = topic.producer(max_bytes=10)
    producer.add(b"x" * 10, None, {}, None, 3, 1)
    with pytest.raises(TooLarge):
        producer.add(b"x" * 11, None, {}, None, 3, 2)
    producer.drain()
    assert topic.stored() == [b"x" * 10]


def test_a_topic_that_must_exist_is_not_created(topic: Topic) -> None:
    with pytest.raises(NotFound):
        topic.producer(create=False)
    assert topic.server.call("KEYS", "*") == []


def test_an_exact_bound_keeps_just_the_newest(topic: Topic) -> None:
    producer = topic.producer(max_len=10)
    send(producer, [*numbers(30), b"x" * 70_000])
    producer.drain()
    left = topic.entries(0)
    assert [m.payload for m in left[:-1]] == numbers(30)[-9:]
    assert left[-1].payload_ref


def test_an_approximate_bound_cuts_whole_nodes_only(topic: Topic) -> None:
    producer = topic.producer(max_len=10, max_len_exact=False)
    send(producer, numbers(1000))
    producer.drain()
    left = topic.stored()
    assert 10 <= len(left) < 300
    assert left == numbers(1000)[-len(left) :]


# -- one topic, many producers -------------------------------------------------


def test_producers_that_create_a_topic_at_once_agree_on_its_partitions(
    topic: Topic,
) -> None:
    gate = threading.Barrier(12)
    seen: list[int] = []

    def produce(partitions: int) -> None:
        session = Session.open(parse_url(topic.server.url, tls=None))
        gate.wait(10)
        producer = Producer(session, TOPIC, ProducerOptions(partitions=partitions))
        send(producer, numbers(50))
        producer.drain()
        seen.append(producer.partitions)
        session.close()

    threads = [threading.Thread(target=produce, args=(n,)) for n in range(1, 13)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(seen) == 12
    assert set(seen) == {int(topic.count() or 0)}
    assert len(topic.stored(seen[0])) == 600
    names = topic.server.call("SMEMBERS", topic.session.keys.partitions(TOPIC))
    assert len(names) == seen[0]


class _Hurry:
    """A monotonic clock that the test moves on."""

    def __init__(self, session: Session) -> None:
        self._real = session.clock
        self.ahead = 0.0

    def now_ms(self) -> int:
        return self._real.now_ms()

    def monotonic(self) -> float:
        return self._real.monotonic() + self.ahead


def test_a_topic_that_grows_is_noticed_within_five_seconds(topic: Topic) -> None:
    clock = _Hurry(topic.session)
    topic.session.clock = clock  # type: ignore[assignment]
    told: list[Sent] = []
    producer = topic.producer(told.extend)
    key = next(k for k in (b"%d" % n for n in range(99)) if key_partition(k, 8) == 5)
    send(producer, [b"before"], key)
    producer.drain()
    meta = topic.session.keys.meta(TOPIC)
    topic.server.call("HSET", meta, "partitionCount", 8)
    send(producer, [b"unaware"], key)
    producer.drain()
    clock.ahead = 5.1
    send(producer, [b"asking"], key)
    producer.drain()
    assert producer.partitions == 8
    send(producer, [b"after"], key)
    producer.drain()
    assert [s.partition for s in told] == [0, 0, 0, 5]
    assert [m.payload for m in topic.entries(5)] == [b"after"]
    assert producer.tally.stored == 4


# -- when it fails half way ----------------------------------------------------


def account(told: list[Sent]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {"stored": [], "failed": [], "unknown": []}
    for sent in told:
        found[sent.status].append(sent.line)
    return found


def test_a_partition_that_takes_nothing_fails_its_own_lines_only(topic: Topic) -> None:
    told: list[Sent] = []
    producer = topic.producer(told.extend, partitions=4, batch=50)
    topic.server.call("SET", topic.session.keys.partition(TOPIC, 1), "no stream")
    keys = [b"%d" % n for n in range(120)]
    with pytest.raises(MqError, match="WRONGTYPE"):
        send_by_key(producer, keys)
    found = account(told)
    reached = len(told)
    wrong = [n for n, k in enumerate(keys[:reached], 1) if key_partition(k, 4) == 1]
    assert found["failed"] == wrong == [line for line, _ in producer.tally.failed]
    assert found["unknown"] == []
    there = [m.payload for part in (0, 2, 3) for m in topic.entries(part)]
    stored = [int(payload) + 1 for payload in there]
    assert sorted(stored) == found["stored"]
    assert producer.tally.first_missing == wrong[0]
    assert producer.tally.stored == len(stored)
    assert producer.tally.stored_after == sum(line > wrong[0] for line in stored)


def test_after_a_failure_everything_raises_it_and_nothing_is_sent(topic: Topic) -> None:
    producer = topic.producer(batch=1)
    topic.server.call("SET", topic.session.keys.partition(TOPIC, 0), "no stream")
    with pytest.raises(MqError) as first:
        send(producer, [b"1", b"2", b"3"])
    topic.server.call("DEL", topic.session.keys.partition(TOPIC, 0))
    for again in (producer.drain, lambda: send(producer, [b"4"])):
        with pytest.raises(MqError) as later:
            again()
        assert later.value is first.value
    assert topic.stored() == []


@contextmanager
def full(server: Server) -> Iterator[None]:
    """The server takes no writes that need memory."""
    server.call("CONFIG", "SET", "maxmemory", 1)
    try:
        yield
    finally:
        server.call("CONFIG", "SET", "maxmemory", 0)


def test_a_body_that_cannot_be_stored_aside_is_a_failed_line(topic: Topic) -> None:
    told: list[Sent] = []
    producer = topic.producer(told.extend)
    send(producer, [b"1", b"2"])
    producer.drain()
    with full(topic.server), pytest.raises(OutOfMemory):
        producer.add(b"x" * 70_000, None, {}, None, 3, 3)
    assert account(told) == {"stored": [1, 2], "failed": [3], "unknown": []}
    assert producer.tally.first_missing == 3
    assert isinstance(producer.tally.cause, OutOfMemory)
    assert topic.stored() == [b"1", b"2"]


def test_lines_before_a_body_aside_are_counted_first(topic: Topic) -> None:
    told: list[Sent] = []
    producer = topic.producer(told.extend)
    send(producer, [b"1", b"2"])
    with full(topic.server), pytest.raises(OutOfMemory):
        producer.add(b"x" * 70_000, None, {}, None, 3, 3)
    assert account(told) == {"stored": [], "failed": [1, 2], "unknown": []}
    assert producer.tally.first_missing == 1


def test_a_hundred_full_servers_leave_no_body_behind_that_is_not_indexed(
    topic: Topic,
) -> None:
    refs: set[bytes] = set()
    for _ in range(100):
        ref = payloads.store(topic.session, TOPIC, 0, b"x" * 70_000)
        refs.add(ref.encode())
        producer = topic.producer()
        with full(topic.server), pytest.raises(OutOfMemory):
            producer.add(b"x" * 70_000, None, {}, None, 3, 1)
    keys = topic.session.keys
    assert set(topic.server.call("KEYS", keys.payload(TOPIC, 0, "*"))) == refs
    assert refs <= set(topic.server.call("ZRANGE", keys.payload_times, 0, -1))


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", [7, 8, 40, 105, 106])
def test_a_connection_cut_in_the_middle_is_told_line_by_line(
    topic: Topic, number: int, moment: Moment
) -> None:
    told: list[Sent] = []
    with (
        short_directory() as directory,
        Proxy(topic.server, directory, Cut(number, moment)) as proxy,
    ):
        session = Session.open(parse_url(proxy.url, tls=None))
        options = ProducerOptions(partitions=4, batch=10)
        producer = Producer(session, TOPIC, options, report=told.extend)
        with pytest.raises(UnknownOutcome) as caught:
            send_all(producer, numbers(100))
    found = account(told)
    there = {int(p) for p in topic.stored(4)}
    assert caught.value.exit == 75
    assert found["failed"] == []
    assert found["unknown"] == producer.tally.unknown
    assert set(found["stored"]) <= there <= {*found["stored"], *found["unknown"]}
    assert len(there) == number - 7 + (moment == "after")
    assert producer.tally.first_missing == min(found["unknown"])
    assert producer.tally.stored == len(found["stored"])


def test_a_connection_cut_while_a_body_goes_aside_is_a_failed_line(
    topic: Topic,
) -> None:
    told: list[Sent] = []
    with (
        short_directory() as directory,
        Proxy(topic.server, directory, Cut(9, "before")) as proxy,
    ):
        session = Session.open(parse_url(proxy.url, tls=None))
        producer = Producer(session, TOPIC, report=told.extend)
        with pytest.raises(Unreachable) as caught:
            send(producer, [b"1", b"x" * 70_000, b"3"])
    assert proxy.commands[-1] == "SADD"
    assert caught.value.exit == 69
    assert account(told) == {"stored": [1], "failed": [2], "unknown": []}
    assert topic.stored() == [b"1"]


def test_line_numbers_become_ranges() -> None:
    assert ranges([]) == []
    assert ranges([5, 1, 2, 3, 7, 8]) == [[1, 3], [5, 5], [7, 8]]
    assert ranges(list(range(0, 100, 2)), 2) == [[0, 0], [2, 2]]


# -- the same from outside -------------------------------------------------------


def lines(payloads: list[bytes]) -> bytes:
    return b"".join(payload + b"\n" for payload in payloads)


def printed(out: bytes) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {"stored": [], "failed": [], "unknown": []}
    for line in out.splitlines():
        record = json.loads(line)
        found[record["status"]].append(record["line"])
    return found


def resume_line(told: bytes) -> tuple[int, int]:
    """Return N of the hint, and how many lines after it are said to be stored."""
    found = re.search(
        rb"--start-line (\d+)(?: \((\d+) lines after it are stored already\))?", told
    )
    assert found, told
    return int(found[1]), int(found[2] or 0)


@pytest.fixture
def small() -> Iterator[TestServer]:
    """A server with room for about two megabytes more than it has."""
    with short_directory() as directory:
        server = start_server(directory, "--maxmemory-policy", "noeviction")
        try:
            used = int(server.info()["used_memory"])
            server.call("CONFIG", "SET", "maxmemory", used + 2_500_000)
            yield server
        finally:
            server.kill()


LONG_LINES = numbers(4000, 1000)
OVER_FOUR = ("--partitions", "4", "--print", "ndjson")


def stored_lines(server: Server, partitions: int = 4) -> Counter[int]:
    session = Session.open(parse_url(server.url, tls=None))
    found = Topic(server, session).stored(partitions)
    session.close()
    return Counter(int(payload) for payload in found)


def test_a_server_that_fills_up_stores_what_is_told_and_the_rest_can_follow(
    small: TestServer,
) -> None:
    first = mqctl(small, "produce", TOPIC, *OVER_FOUR, input=lines(LONG_LINES))
    assert first.returncode == 1, first.stderr
    assert b"OOM" in first.stderr
    found = printed(first.stdout)
    assert found["failed"]
    assert not found["unknown"]
    there = stored_lines(small)
    assert sorted(there) == found["stored"]
    number, again = resume_line(first.stderr)
    assert number == min(found["failed"])
    assert again == sum(line > number for line in found["stored"])
    small.call("CONFIG", "SET", "maxmemory", 0)
    rest = mqctl(
        *(small, "produce", TOPIC, "--start-line", str(number)),
        input=lines(LONG_LINES),
    )
    assert rest.returncode == 0
    there = stored_lines(small)
    assert sorted(there) == list(range(1, 4001))
    assert sum(there.values()) == 4000 + again


def test_the_printed_record_resumes_with_exactly_the_rest(
    small: TestServer, tmp_path: Path
) -> None:
    first = mqctl(small, "produce", TOPIC, *OVER_FOUR, input=lines(LONG_LINES))
    assert first.returncode == 1
    record = tmp_path / "record"
    record.write_bytes(first.stdout)
    small.call("CONFIG", "SET", "maxmemory", 0)
    rest = mqctl(
        *(small, "produce", TOPIC, "--resume", str(record)), input=lines(LONG_LINES)
    )
    assert rest.returncode == 0, rest.stderr
    assert stored_lines(small) == Counter(range(1, 4001))


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_cut_connection_is_exit_75_and_names_the_line_to_go_on_from(
    redis: Server, moment: Moment
) -> None:
    sent = numbers(300)
    with (
        short_directory() as directory,
        Proxy(redis, directory, Cut(180, moment)) as proxy,
    ):
        first = mqctl(
            *(proxy, "produce", TOPIC, *OVER_FOUR, "--batch", "50"), input=lines(sent)
        )
    assert first.returncode == 75, first.stderr
    found = printed(first.stdout)
    there = stored_lines(redis)
    assert set(found["stored"]) <= set(there)
    assert set(there) <= {*found["stored"], *found["unknown"]}
    assert f"{len(found['stored'])} stored".encode() in first.stderr
    assert f"{len(found['unknown'])} unknown".encode() in first.stderr
    number, again = resume_line(first.stderr)
    assert (number, again) == (min(found["unknown"]), 0)
    rest = mqctl(
        *(redis, "produce", TOPIC, "--start-line", str(number)), input=lines(sent)
    )
    assert rest.returncode == 0
    after = stored_lines(redis)
    assert sorted(after) == list(range(1, 301))
    twice = [line for line, times in after.items() if times > 1]
    assert set(twice) == set(there) & set(found["unknown"])
