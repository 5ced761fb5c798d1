"""The server goes, comes back, loses keys: consumers go on by themselves."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.server import (
    Server,
    TestServer,
    embedded_server,
    short_directory,
    start_server,
)
from tests.support.wait import wait_until
from tests.support.worker import (
    QUICK,
    Workers,
    lease,
    mqctl,
    owners,
    pending,
    produce,
    script,
    stream,
    until_held,
    workers,
)


@pytest.fixture
def mortal() -> Iterator[TestServer]:
    """A server of the test's own."""
    with short_directory() as directory:
        server = start_server(directory)
        try:
            yield server
        finally:
            server.kill()


# -- killed and restarted -----------------------------------------------------


@pytest.mark.parametrize("mode", ["print", "exec"])
def test_a_consumer_comes_back_after_each_of_three_crashes(
    mortal: TestServer, mode: str
) -> None:
    with workers(mortal) as crew:
        produce(mortal, "t", ["0"], "--partitions", "3")
        command = () if mode == "print" else ("--", "sh", "-c", "cat; echo")
        worker = crew.consume("t", *QUICK, *command)
        wait_until(lambda: worker.lines == ["0"], "the first")
        for crash in range(1, 4):
            mortal.kill()
            wait_until(lambda n=crash: worker.err.count("reconnecting") == n, "a note")
            mortal.start()
            produce(mortal, "t", [str(crash)])
            wait_until(
                lambda n=crash: str(n) in worker.lines, "what came after", timeout=5
            )
        assert worker.stop() == 0
        assert set(worker.lines) == {"0", "1", "2", "3"}
        assert pending(mortal, "t", 3) == 0
        assert len(worker.err.splitlines()) <= 10, worker.err


def test_what_is_in_work_while_the_server_is_down_is_settled_once(
    mortal: TestServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("x")
    log, go = directory / "log", directory / "go"
    slow = script(
        directory / "slow",
        f"echo begin >> {log}; while [ ! -e {go} ]; do sleep 0.05; done",
    )
    with workers(mortal) as crew:
        produce(mortal, "t", ["x"])
        worker = crew.consume("t", *QUICK, "--", slow)
        wait_until(log.exists, "the handler")
        mortal.kill()
        wait_until(lambda: "reconnecting" in worker.err, "a note")
        ttl = 1.2
        wait_until(_after(ttl), "the lease's end")
        mortal.start()
        wait_until(lambda: "connected again" in worker.err, "the reconnection")
        until_held(mortal, "t")
        wait_until(_after(1.5), "more than claim-idle")
        go.touch()
        wait_until(lambda: pending(mortal, "t", 1) == 0, "settled")
        assert worker.stop() == 0
        assert log.read_text() == "begin\n"


def _after(seconds: float):  # noqa: ANN202
    import time

    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def test_a_stop_while_the_server_is_down_is_quick(mortal: TestServer) -> None:
    with workers(mortal) as crew:
        produce(mortal, "t", ["x"])
        worker = crew.consume("t", *QUICK)
        wait_until(lambda: worker.lines == ["x"] and not pending(mortal, "t", 1), "x")
        mortal.kill()
        wait_until(lambda: "reconnecting" in worker.err, "a note")
        assert worker.stop(timeout=3) == 0


def test_a_second_signal_does_not_wait_for_a_server_that_does_not_answer(
    mortal: TestServer,
) -> None:
    with workers(mortal) as crew:
        produce(mortal, "t", ["x"])
        worker = crew.consume("t", *QUICK)
        wait_until(lambda: worker.lines == ["x"], "x")
        os.kill(mortal.pid, signal.SIGSTOP)
        try:
            wait_until(_after(1), "it waits for the server")
            worker.send(signal.SIGTERM)
            wait_until(_after(0.2), "one signal after the other")
            assert worker.stop(timeout=4) == 143
        finally:
            os.kill(mortal.pid, signal.SIGCONT)


@dataclass
class Local(Server):
    """The embedded server of a directory, by the name users give it."""

    url: str = ""  # type: ignore[misc]


def test_the_embedded_server_is_started_again_by_whoever_misses_it() -> None:
    with short_directory() as directory, embedded_server(directory) as server:
        local = Local(server.socket)
        local.url = f"local:{directory}"
        with workers(local) as crew:
            produce(local, "t", ["before"])
            worker = crew.consume("t", *QUICK)
            wait_until(lambda: worker.lines == ["before"], "the first")
            pid = int(server.info()["process_id"])
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: "connected again" in worker.err, "the reconnection")
            assert int(server.info()["process_id"]) != pid
            produce(local, "t", ["after"])
            wait_until(lambda: worker.lines[-1] == "after", "the second")
            assert worker.stop() == 0
            assert pending(server, "t", 1) == 0


# -- keys that vanish ---------------------------------------------------------


def test_a_partition_deleted_under_a_consumer_is_made_again(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["a"], "--partitions", "2")
    worker = crew.consume("t", *QUICK)
    wait_until(lambda: worker.lines == ["a"] and not pending(redis, "t", 2), "a")
    redis.call("DEL", stream("t", 0), stream("t", 1))
    wait_until(lambda: worker.err.count("made again") == 2, "it noticed", timeout=2)
    produce(redis, "t", ["b", "c"])
    wait_until(lambda: sorted(worker.lines) == ["a", "b", "c"], "both", timeout=2)
    assert worker.stop() == 0


def test_a_group_destroyed_under_a_consumer_goes_on_where_it_was(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["a", "b"])
    worker = crew.consume("t", *QUICK)
    wait_until(lambda: len(worker.lines) == 2 and not pending(redis, "t", 1), "both")
    redis.call("XGROUP", "DESTROY", stream("t", 0), "g")
    wait_until(lambda: "made again after" in worker.err, "it noticed", timeout=2)
    produce(redis, "t", ["c"])
    wait_until(lambda: len(worker.lines) == 3, "c", timeout=2)
    assert worker.stop() == 0
    assert worker.lines == ["a", "b", "c"]


def test_a_group_destroyed_while_a_handler_runs_costs_nothing(
    redis: Server, crew: Workers, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("x")
    log, go = directory / "log", directory / "go"
    slow = script(
        directory / "slow",
        f"cat >> {log}; while [ ! -e {go} ]; do sleep 0.05; done",
    )
    produce(redis, "t", ["a"])
    worker = crew.consume("t", *QUICK, "--", slow)
    wait_until(log.exists, "the handler")
    redis.call("XGROUP", "DESTROY", stream("t", 0), "g")
    wait_until(lambda: "made again after" in worker.err, "it noticed", timeout=2)
    go.touch()
    produce(redis, "t", ["b"])
    wait_until(lambda: "b" in log.read_text(), "the next")
    wait_until(lambda: pending(redis, "t", 1) == 0, "nothing pending")
    assert worker.stop() == 0
    assert set(log.read_text()) == {"a", "b"}


def test_a_group_deleted_on_purpose_ends_its_consumers(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["a"])
    team = [crew.consume("t", *QUICK) for _ in range(2)]
    wait_until(lambda: redis.call("ZCARD", "streaming:mq:members:g") == 2, "both")
    until_held(redis, "t")
    redis.call("HDEL", "streaming:mq:commit:t:p:0", "g")
    redis.call("XGROUP", "DESTROY", stream("t", 0), "g")
    assert [w.wait(timeout=5) for w in team] == [4, 4]
    assert all("was deleted" in w.err for w in team)
    assert redis.call("XINFO", "GROUPS", stream("t", 0)) == []


def test_a_server_emptied_under_a_consumer_is_waited_for(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["a"])
    worker = crew.consume("t", *QUICK)
    wait_until(lambda: worker.lines == ["a"], "a")
    redis.call("FLUSHALL")
    wait_until(lambda: "was deleted" in worker.err, "it noticed", timeout=2)
    produce(redis, "t", ["b"], "--partitions", "2")
    wait_until(lambda: worker.lines == ["a", "b"], "b", timeout=3)
    assert worker.stop() == 0


def test_a_topic_deleted_under_consumers_stays_deleted(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", [str(i) for i in range(50)], "--partitions", "4")
    produce(redis, "other", ["x"])
    team = [crew.start("consume", "t", "other", "-g", "g", *QUICK) for _ in range(2)]
    wait_until(lambda: sum(len(w.lines) for w in team) == 51, "all read")
    wait_until(lambda: len({*owners(redis, "t", 4)} - {None}) == 2, "both take part")
    redis.call("SREM", "streaming:mq:topics:registry", "t")
    redis.call("DEL", *[k for k in redis.call("KEYS", "*") if b":t:" in k])
    wait_until(lambda: all("was deleted" in w.err for w in team), "they noticed")
    wait_until(_after(1.5), "some rebalances")
    assert [k for k in redis.call("KEYS", "*") if b":t:" in k] == []
    produce(redis, "other", ["y"])
    wait_until(lambda: sum(len(w.lines) for w in team) == 52, "the other goes on")
    assert [worker.stop() for worker in team] == [0, 0]


def test_a_key_of_another_type_is_said_and_ends_it(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["a"])
    worker = crew.consume("t", *QUICK)
    wait_until(lambda: worker.lines == ["a"], "a")
    redis.call("SET", stream("t", 0), "not a stream")
    assert worker.wait(timeout=3) == 1
    assert f"{stream('t', 0)} is not a stream" in worker.err
    assert redis.call("EXISTS", lease("t", 0)) == 0
    done = mqctl(redis, "consume", "t", "-g", "g", "-e")
    assert done.returncode == 1
    assert owners(redis, "t", 1) == [None]


# -- no memory ----------------------------------------------------------------


def test_a_server_without_memory_is_waited_for(
    mortal: TestServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("x")
    log, go, fail = (directory / name for name in ("log", "go", "fail"))
    fail.touch()
    handler = script(
        directory / "handler",
        f"cat >> {log}; while [ ! -e {go} ]; do sleep 0.05; done; test ! -e {fail}",
    )
    with workers(mortal) as crew:
        produce(mortal, "t", ["a"])
        worker = crew.consume("t", *QUICK, "--retry-base", "100ms", "--", handler)
        wait_until(log.exists, "a is in work")
        mortal.call("CONFIG", "SET", "maxmemory", "1")
        go.touch()
        wait_until(lambda: "holding on" in worker.err, "it noticed")
        wait_until(_after(2), "more than a lease without memory")
        assert worker.running, worker.err
        assert owners(mortal, "t", 1) != [None]
        assert pending(mortal, "t", 1) == 1
        fail.unlink()
        mortal.call("CONFIG", "SET", "maxmemory", "0")
        wait_until(lambda: log.read_text() == "aa", "it is tried again")
        wait_until(lambda: pending(mortal, "t", 1) == 0, "settled")
        assert worker.stop() == 0
        assert len(worker.err.splitlines()) < 8, worker.err
