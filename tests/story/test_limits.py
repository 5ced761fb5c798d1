"""How a consumer ends by itself, where it begins, and topics that are not there."""

import json
import time
from pathlib import Path

import pytest

from tests.support.server import Server
from tests.support.wait import wait_until
from tests.support.worker import (
    CALM,
    QUICK,
    Workers,
    dead,
    mqctl,
    owners,
    pending,
    produce,
    script,
    stream,
    until_held,
)

ALL_PENDING = """
local sum = 0
for _, key in ipairs(KEYS) do sum = sum + redis.call('XPENDING', key, 'g')[1] end
return sum
"""  # at one moment


def consume(server: Server, *options: str) -> list[str]:
    """Run a consumer of topic t to its end and return its lines."""
    done = mqctl(server, "consume", "t", "-g", "g", *options)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()


# -- -n -----------------------------------------------------------------------


def test_a_limit_takes_exactly_so_many_and_leaves_nothing_pending(
    redis: Server,
) -> None:
    numbers = [f"{i:02d}" for i in range(40)]
    produce(redis, "t", numbers, "--partitions", "4")
    seen: list[str] = []
    for limit in (1, 3, 4, 7, 25):
        lines = consume(redis, "-n", str(limit))
        assert len(lines) == limit
        assert pending(redis, "t", 4) == 0
        seen += lines
    assert sorted(seen) == numbers


def test_a_limit_holds_for_what_is_taken_over_too(redis: Server, crew: Workers) -> None:
    produce(redis, "t", [str(i) for i in range(40)], "--partitions", "4")
    a = crew.consume("t", *QUICK, "--ack", "none")
    wait_until(lambda: len(a.lines) == 40, "all handed out")
    assert a.stop() == 0
    assert len(consume(redis, *QUICK, "-n", "5")) == 5
    assert pending(redis, "t", 4) == 35
    assert len(consume(redis, *QUICK, "-n", "35")) == 35


def test_a_limit_counts_every_attempt(redis: Server, tmp_path: Path) -> None:
    produce(redis, "t", ["a", "b", "c", "d"], "--partitions", "4")
    log = tmp_path / "log"
    failing = script(tmp_path / "failing", f"cat >> {log}; exit 75")
    consume(redis, "-n", "6", "--retry-base", "100ms", "--", failing)
    assert len(log.read_text()) == 6
    assert pending(redis, "t", 4) == 0
    assert dead(redis, "t") == []


def test_more_in_flight_than_allowed_are_never_fetched(
    redis: Server, crew: Workers, tmp_path: Path
) -> None:
    produce(redis, "t", [str(i) for i in range(12)], "--partitions", "4")
    slow = script(tmp_path / "slow", "sleep 0.1")
    worker = crew.consume("t", *CALM, "--max-in-flight", "2", "-e", "--", slow)
    until_held(redis, "t", 4)
    streams = [stream("t", i) for i in range(4)]
    most = 0

    def over() -> bool:
        nonlocal most
        most = max(most, redis.call("EVAL", ALL_PENDING, 4, *streams))
        return not worker.running

    wait_until(over, "its end")
    assert most == 2
    assert worker.wait() == 0


# -- -e -----------------------------------------------------------------------


def test_three_that_stop_when_empty_share_the_work_and_all_end(
    redis: Server, crew: Workers
) -> None:
    numbers = [str(i) for i in range(3000)]
    produce(redis, "t", numbers, "--partitions", "2")
    team = [crew.consume("t", *QUICK, "-e") for _ in range(3)]
    assert [worker.wait() for worker in team] == [0, 0, 0]
    seen = [line for worker in team for line in worker.lines]
    assert sorted(seen, key=int) == numbers
    assert pending(redis, "t", 2) == 0


def test_a_consumer_without_a_partition_ends_when_the_group_has_all_in_work(
    redis: Server, crew: Workers, tmp_path: Path
) -> None:
    produce(redis, "t", [str(i) for i in range(8)])
    mark = tmp_path / "go"
    slow = script(tmp_path / "slow", f"while [ ! -e {mark} ]; do sleep 0.05; done")
    a = crew.consume("t", *CALM, "--batch", "4", "-e", "--", slow)
    wait_until(lambda: pending(redis, "t", 1) == 4, "half of it is fetched")
    b = crew.consume("t", *CALM, "-e")
    wait_until(lambda: redis.call("ZCARD", "streaming:mq:members:g") == 2, "b is there")
    assert b.running
    mark.touch()
    assert (a.wait(), b.wait()) == (0, 0)
    assert b.lines == []


def test_what_is_in_work_and_delayed_is_named(
    redis: Server, crew: Workers, tmp_path: Path
) -> None:
    produce(redis, "t", ["slow", "later"], "--partitions", "1")
    decide = script(
        tmp_path / "decide", 'read -r l; [ "$l" = later ] && exit 75; exec sleep 3'
    )
    a = crew.consume("t", *CALM, "--", decide)
    wait_until(lambda: pending(redis, "t", 1) == 2, "in work")
    done = mqctl(redis, "consume", "t", "-g", "g", "-e")
    assert done.returncode == 0
    assert "left: 2 in work" in done.stderr.decode()
    a.kill()


def test_delayed_retries_are_named_with_the_time_of_the_next(redis: Server) -> None:
    produce(redis, "t", ["x"])
    done = mqctl(
        redis, "consume", "t", "-g", "g", "-e", "--retry-base", "60s", "--", "false"
    )
    assert done.returncode == 0
    told = done.stderr.decode()
    assert "left: 1 delayed (next in " in told


# -- other ends ---------------------------------------------------------------


def test_idle_exit_ends_when_nothing_came_for_so_long(redis: Server) -> None:
    produce(redis, "t", ["a", "b"])
    assert consume(redis, "--idle-exit", "300ms") == ["a", "b"]


def test_a_retry_that_comes_due_counts_as_activity(redis: Server) -> None:
    produce(redis, "t", ["x"])
    options = ("--idle-exit", "900ms", "--retry-base", "500ms", "--retry-cap", "500ms")
    consume(redis, *options, "--", "false")
    assert [h["x-dead-attempts"] for h in dead(redis, "t")] == ["4"]


def test_max_time_ends_it(redis: Server) -> None:
    produce(redis, "t", ["a"])
    began = time.monotonic()
    assert consume(redis, "--max-time", "500ms") == ["a"]
    assert 0.5 < time.monotonic() - began < 3


@pytest.mark.parametrize(
    "end", [("-e",), ("--idle-exit", "200ms"), ("--max-time", "200ms")]
)
def test_nothing_received_is_5_if_that_is_asked(
    redis: Server, end: tuple[str, ...]
) -> None:
    produce(redis, "t", ["a"])
    words = ("consume", "t", "-g", "g", "--fail-if-empty", *end)
    assert mqctl(redis, *words).returncode == 0
    assert mqctl(redis, *words).returncode == 5


# -- topics that do not exist -------------------------------------------------


def test_a_topic_that_does_not_exist_is_waited_for_and_not_created(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "orders", ["x"])
    before = {*redis.call("KEYS", "*")}
    worker = crew.consume("ordres", *CALM)
    wait_until(lambda: "does not exist yet" in worker.err, "a note")
    assert "did you mean orders?" in worker.err
    presence = {b"streaming:mq:members:g"}
    wait_until(lambda: {*redis.call("KEYS", "*")} - before == presence, "a beat")
    produce(redis, "ordres", ["1", "2"], "--partitions", "3")
    wait_until(lambda: sorted(worker.lines) == ["1", "2"], "both", timeout=4)
    assert worker.stop() == 0
    assert worker.err.count("does not exist") == 1


def test_with_exit_when_empty_it_is_4_at_once(redis: Server) -> None:
    done = mqctl(redis, "consume", "nothing", "-g", "g", "-e")
    assert done.returncode == 4
    assert done.stderr.decode().startswith("mqctl: topic nothing does not exist")
    assert redis.call("DBSIZE") == 0


def test_create_makes_it_with_its_partitions(redis: Server, crew: Workers) -> None:
    worker = crew.consume("new", *CALM, "--create", "--partitions", "3")
    until_held(redis, "new", 3)
    produce(redis, "new", ["x"], "--partitions", "7")
    wait_until(lambda: worker.lines == ["x"], "the message")
    assert worker.stop() == 0
    assert redis.call("HGET", "streaming:mq:topic:new:meta", "partitionCount") == b"3"


def test_partitions_that_appear_are_read_from_their_start(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["old"])
    worker = crew.consume("t", *QUICK, "--from", "end")
    until_held(redis, "t", 1)
    redis.call("HSET", "streaming:mq:topic:t:meta", "partitionCount", 2)
    produce(redis, "t", ["new"], "-p", "1")
    wait_until(lambda: worker.lines == ["new"], "the new one")
    assert worker.stop() == 0


# -- --from -------------------------------------------------------------------


def test_a_new_group_begins_where_it_is_told_to(redis: Server) -> None:
    produce(redis, "t", ["a", "b", "c"])
    rows = redis.call("XRANGE", stream("t", 0), "-", "+")
    second = rows[1][0].decode()
    ms = int(rows[0][0].split(b"-")[0])
    expected = {
        "start": ["a", "b", "c"],
        "0": ["a", "b", "c"],
        "end": [],
        "$": [],
        second: ["c"],
        "last:1": ["c"],
        "last:2": ["b", "c"],
        "last:9": ["a", "b", "c"],
        "-1h": ["a", "b", "c"],
        f"@{ms}": ["a", "b", "c"],
        f"@{ms + 60_000}": [],
    }
    for number, (position, lines) in enumerate(expected.items()):
        done = mqctl(
            redis, "consume", "t", "-g", f"g{number}", "-e", "--from", position
        )
        assert done.stdout.decode().split() == lines, position


def test_the_newest_are_counted_over_all_partitions(redis: Server) -> None:
    for i in range(8):
        redis.call("XADD", stream("t", i % 2), f"{i + 1}-0", "payload", str(i))
    redis.call("SADD", "streaming:mq:topics:registry", "t")
    redis.call("HSET", "streaming:mq:topic:t:meta", "partitionCount", 2)
    assert sorted(consume(redis, "-e", "--from", "last:3")) == ["5", "6", "7"]


def test_a_group_that_exists_goes_on_where_it_was(redis: Server) -> None:
    produce(redis, "t", ["a"])
    consume(redis, "-e")
    produce(redis, "t", ["b"])
    done = mqctl(redis, "consume", "t", "-g", "g", "-e", "--from", "end")
    assert done.stdout == b"b\n"
    assert "--from has no effect" in done.stderr.decode()


def test_a_partition_that_a_known_group_has_not_seen_begins_at_its_start(
    redis: Server,
) -> None:
    produce(redis, "t", ["a"])
    consume(redis, "-e")
    redis.call("HSET", "streaming:mq:topic:t:meta", "partitionCount", 2)
    produce(redis, "t", ["b"], "-p", "1")
    assert consume(redis, "-e", "--from", "end") == ["b"]


def test_only_the_partitions_named_are_read(redis: Server) -> None:
    for i in range(4):
        produce(redis, "t", [str(i)], "-p", str(i), "--partitions", "4")
    assert sorted(consume(redis, "-e", "-p", "1-2")) == ["1", "2"]
    done = mqctl(redis, "consume", "t", "-g", "g", "-e", "-p", "4")
    assert done.returncode == 2
    assert "partition 4 is out of range" in done.stderr.decode()
    assert owners(redis, "t", 4) == [None] * 4


def test_the_summary_is_a_record_for_machines(redis: Server) -> None:
    produce(redis, "t", ["a", "b"])
    done = mqctl(redis, "consume", "t", "-g", "g", "-e", "-o", "ndjson")
    summary = json.loads(done.stderr.splitlines()[-1])["summary"]
    assert summary.pop("duration_ms") >= 0
    assert summary == {
        "received": 2,
        "acked": 2,
        "retried": 0,
        "dead": 0,
        "skipped": 0,
        "duplicates_possible": 0,
        "left_in_work": 0,
        "left_delayed": 0,
    }
