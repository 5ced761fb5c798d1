"""Sharing partitions: fair, calm, handed over at once, strangers respected."""

import time
from collections import Counter

import pytest

from tests.support.server import Server
from tests.support.wait import wait_until
from tests.support.worker import (
    CALM,
    QUICK,
    Workers,
    lease,
    members,
    mqctl,
    owners,
    pending,
    produce,
    stream,
    until_held,
)


def shares(server: Server, topic: str, partitions: int) -> list[int]:
    return sorted(Counter(owners(server, topic, partitions)).values())


def calm(server: Server, topic: str, partitions: int, seconds: float) -> bool:
    """Tell whether no partition changes hands for so long."""
    before = owners(server, topic, partitions)
    end = time.monotonic() + seconds
    wait_until(
        lambda: time.monotonic() > end or owners(server, topic, partitions) != before,
        "a move or the end",
        timeout=seconds + 5,
    )
    return owners(server, topic, partitions) == before


def test_joining_consumers_get_their_share_and_then_nothing_moves(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["x"], "--partitions", "8")
    crew.consume("t")
    wait_until(lambda: shares(redis, "t", 8) == [8], "all with the first")
    crew.consume("t")
    wait_until(lambda: shares(redis, "t", 8) == [4, 4], "half each")
    crew.consume("t")
    wait_until(lambda: shares(redis, "t", 8) == [2, 3, 3], "a third each")
    assert calm(redis, "t", 8, 5)


def test_consumers_that_start_together_do_not_quarrel(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["x"], "--partitions", "8")
    team = [crew.consume("t", *QUICK) for _ in range(4)]
    wait_until(lambda: shares(redis, "t", 8) == [2, 2, 2, 2], "two each")
    assert calm(redis, "t", 8, 3)
    assert [worker.stop() for worker in team] == [0] * 4


@pytest.mark.slow
def test_twenty_consumers_and_five_producers_start_at_once_on_a_new_topic(
    redis: Server, crew: Workers
) -> None:
    producers = [
        crew.start("produce", "t", *map(str, range(i, 100, 5)), "--partitions", "8")
        for i in range(5)
    ]
    team = [crew.consume("t", *QUICK) for _ in range(20)]
    assert [p.wait(60) for p in producers] == [0] * 5
    wait_until(lambda: sum(len(w.lines) for w in team) == 100, "all lines", timeout=60)
    wait_until(lambda: shares(redis, "t", 8) == [1] * 8, "one each", timeout=30)
    for i in range(8):
        (group,) = redis.call("XINFO", "GROUPS", stream("t", i))
        assert group[1] == b"g"
    wait_until(lambda: members(redis) == 20, "all are there", timeout=30)
    for worker in team:
        worker.send(15)
    assert [worker.wait() for worker in team] == [0] * 20
    seen = [line for worker in team for line in worker.lines]
    assert sorted(map(int, seen)) == list(range(100))


def test_many_small_topics_are_shared_as_a_whole(redis: Server, crew: Workers) -> None:
    topics = [f"topic-{i}" for i in range(100)]
    for topic in topics:
        redis.call("SADD", "streaming:mq:topics:registry", topic)
        redis.call("HSET", f"streaming:mq:topic:{topic}:meta", "partitionCount", 1)
    for _ in range(5):
        crew.start("consume", *topics, "-g", "g", *QUICK)

    def held() -> list[int]:
        found = [redis.call("GET", lease(topic, 0)) for topic in topics]
        return sorted(Counter(found).values())

    wait_until(lambda: held() == [20] * 5, "20 each", timeout=30)


# -- strangers ----------------------------------------------------------------


def test_a_lease_of_a_stranger_is_respected_until_it_ends(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["x"], "--partitions", "2")
    redis.call("SET", lease("t", 0), "java-1", "PX", 60_000)
    worker = crew.consume("t", *QUICK, "--consumer", "a")
    wait_until(lambda: owners(redis, "t", 2) == ["java-1", "a"], "the free one")
    produce(redis, "t", ["his"], "-p", "0")
    produce(redis, "t", ["mine"], "-p", "1")
    wait_until(lambda: "mine" in worker.lines, "mine")
    assert owners(redis, "t", 2) == ["java-1", "a"]
    assert "his" not in worker.lines
    redis.call("PEXPIRE", lease("t", 0), 1)
    wait_until(lambda: "his" in worker.lines, "his, once the lease has ended")
    assert worker.stop() == 0


def test_a_lease_without_an_end_is_respected_too(redis: Server, crew: Workers) -> None:
    produce(redis, "t", ["x"], "--partitions", "2")
    redis.call("SET", lease("t", 0), "java-1")
    team = [crew.consume("t", *QUICK) for _ in range(2)]
    wait_until(lambda: members(redis) == 2, "both")
    assert calm(redis, "t", 1, 2)
    assert owners(redis, "t", 1) == ["java-1"]
    assert [worker.stop() for worker in team] == [0, 0]


def test_leases_deleted_by_hand_are_taken_again_and_no_message_is_lost(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["x"], "--partitions", "4")
    team = [crew.consume("t", *QUICK) for _ in range(2)]
    wait_until(lambda: shares(redis, "t", 4) == [2, 2], "two each")
    for round_ in range(5):
        redis.call("DEL", *(lease("t", i) for i in range(4)))
        produce(redis, "t", [f"{round_}-{i}" for i in range(20)])
        until_held(redis, "t", 4)
    wait_until(lambda: len({n for w in team for n in w.lines}) == 101, "all lines")
    wait_until(lambda: shares(redis, "t", 4) == [2, 2], "two each again")
    # What its printer could not settle any more is taken over from it.
    wait_until(lambda: pending(redis, "t", 4) == 0, "all settled")
    assert [worker.stop() for worker in team] == [0, 0]


# -- names --------------------------------------------------------------------


def test_a_name_in_use_is_refused(redis: Server, crew: Workers) -> None:
    produce(redis, "t", ["x"])
    first = crew.consume("t", *CALM, "--consumer", "a")
    until_held(redis, "t")
    done = mqctl(redis, "consume", "t", "-g", "g", "--consumer", "a")
    assert done.returncode == 6
    assert "already running" in done.stderr.decode()
    assert owners(redis, "t", 1) == ["a"]
    assert first.stop() == 0


def test_of_two_of_one_name_that_start_together_one_is_refused(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["x"])
    team = [crew.consume("t", *CALM, "--consumer", "a") for _ in range(3)]
    wait_until(lambda: sum(w.running for w in team) == 1, "one is left")
    (left,) = [w for w in team if w.running]
    wait_until(lambda: left.lines == ["x"], "it works")
    assert left.stop() == 0
    assert sorted(w.wait() for w in team) == [0, 6, 6]


def test_a_killed_consumer_started_again_has_its_pending_messages_at_once(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["1", "2", "3"])
    worker = crew.consume("t", *CALM, "--consumer", "a", "--", "sleep", "60")
    wait_until(lambda: pending(redis, "t", 1) == 3, "fetched")
    worker.kill()
    again = crew.consume("t", *CALM, "--consumer", "a", "-F", "%s %a\n")
    wait_until(lambda: len(again.lines) == 3, "all three")
    assert again.lines == ["1 2", "2 1", "3 1"]
    assert again.stop() == 0


def test_a_frozen_consumer_whose_name_was_taken_ends_with_6(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["x"])
    frozen = crew.consume("t", *QUICK, "--consumer", "a")
    wait_until(lambda: frozen.lines == ["x"], "x")
    frozen.send(19)
    taker = crew.consume("t", *QUICK, "--consumer", "a")
    produce(redis, "t", ["y"])
    wait_until(lambda: taker.lines == ["y"], "the taker works")
    frozen.send(18)
    assert frozen.wait() == 6
    produce(redis, "t", ["z"])
    wait_until(lambda: taker.lines == ["y", "z"], "the taker goes on")
    assert frozen.lines == ["x"]
    assert taker.stop() == 0


def test_short_runs_leave_no_names_behind(redis: Server) -> None:
    produce(redis, "t", [str(i) for i in range(8)], "--partitions", "2")
    for _ in range(8):
        assert mqctl(redis, "consume", "t", "-g", "g", "-n", "1").returncode == 0
    for i in range(2):
        assert redis.call("XINFO", "CONSUMERS", stream("t", i), "g") == []
    assert members(redis) == 0


@pytest.mark.slow
def test_sharing_stays_calm_for_half_a_minute(redis: Server, crew: Workers) -> None:
    produce(redis, "t", ["x"], "--partitions", "8")
    for _ in range(3):
        crew.consume("t", *QUICK)
    wait_until(lambda: shares(redis, "t", 8) == [2, 3, 3], "a third each")
    assert calm(redis, "t", 8, 30)
