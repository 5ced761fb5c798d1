"""Stopping: what is in hand is finished or given back, leases are free at once."""

import os
import signal
import subprocess
import time
from collections import defaultdict
from pathlib import Path

import pytest

from mqctl.core.assignment import subscription_id
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
    script,
    stream,
    until_held,
)

INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
LOUD = 'read -r line; echo "$MQ_KEY $line $MQ_ATTEMPT" >> "$LOG"'


def test_what_was_fetched_and_not_started_is_with_another_consumer_at_once(
    redis: Server, crew: Workers, tmp_path: Path
) -> None:
    produce(redis, "t", [f"k{i % 5}:{i}" for i in range(51)], "-K", ":")
    first, second = tmp_path / "first", tmp_path / "second"
    slow = script(tmp_path / "slow", f"{LOUD}; sleep 0.5")
    quick = script(tmp_path / "quick", LOUD)
    a = crew.consume("t", *CALM, "--batch", "60", "--", slow, env={"LOG": str(first)})
    wait_until(first.exists, "the first is in work")
    b = crew.consume(
        "t", *CALM, "--consumer", "b", "--", quick, env={"LOG": str(second)}
    )
    wait_until(lambda: members(redis) == 2, "both are there")
    assert pending(redis, "t", 1) > 40
    assert redis.call("XPENDING", stream("t", 0), "g", "-", "+", 1, "b") == []

    a.send(TERM)
    wait_until(
        lambda: (
            len(redis.call("XPENDING", stream("t", 0), "g", "-", "+", 99, "b")) > 30
        ),
        "the rest at the other one",
        timeout=2,
    )
    assert a.wait() == 0
    wait_until(lambda: pending(redis, "t", 1) == 0, "all settled")
    assert b.stop() == 0
    handled = [
        line.split() for p in (first, second) for line in p.read_text().splitlines()
    ]
    assert {attempt for _, _, attempt in handled} == {"1"}
    order = defaultdict(list)
    for key, number, _ in handled:
        order[key].append(int(number))
    assert order == {f"k{k}": list(range(k, 51, 5)) for k in range(5)}


def test_the_leases_of_a_stopped_consumer_are_with_another_one_at_once(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["x"], "--partitions", "4")
    a = crew.consume("t", *CALM, "--consumer", "a")
    until_held(redis, "t", 4)
    crew.consume("t", *CALM, "--consumer", "b")
    wait_until(lambda: members(redis) == 2, "both are there")
    assert a.stop() == 0
    wait_until(lambda: owners(redis, "t", 4) == ["b"] * 4, "b has all", timeout=2)


def test_without_another_consumer_the_leases_are_free(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["x"], "--partitions", "4")
    a = crew.consume("t", *CALM)
    until_held(redis, "t", 4)
    assert a.stop() == 0
    assert owners(redis, "t", 4) == [None] * 4
    assert members(redis) == 0


@pytest.mark.parametrize(("number", "code"), [(INT, -INT), (TERM, 0), (HUP, 0)])
def test_one_signal_drains(
    redis: Server, crew: Workers, number: int, code: int
) -> None:
    produce(redis, "t", ["x"])
    worker = crew.consume("t", *CALM)
    wait_until(lambda: worker.lines == ["x"], "the message")
    assert worker.stop(number) == code
    assert pending(redis, "t", 1) == 0
    assert owners(redis, "t", 1) == [None]


@pytest.mark.parametrize(("number", "code"), [(INT, -INT), (TERM, 143), (HUP, 129)])
def test_a_second_signal_stops_at_once_and_leaves_the_message_pending(
    redis: Server, crew: Workers, tmp_path: Path, number: int, code: int
) -> None:
    produce(redis, "t", ["x", "y"], "--partitions", "2", "-p", "0")
    pid = tmp_path / "pid"
    slow = script(
        tmp_path / "slow", f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 60"
    )
    worker = crew.consume("t", *CALM, "--", slow)
    wait_until(pid.exists, "the handler")
    worker.send(number)
    wait_until(lambda: owners(redis, "t", 2)[1] is None, "it drains")
    started = time.monotonic()
    assert worker.stop(number) == code
    assert time.monotonic() - started < 10  # of the sixty
    assert pending(redis, "t", 1) == 2
    handler = int(pid.read_text())
    wait_until(lambda: not Path(f"/proc/{handler}").exists(), "the handler's end")


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.15, 0.2, 0.3])
def test_an_interrupt_at_any_moment_of_the_start_is_no_traceback(
    redis: Server, crew: Workers, delay: float
) -> None:
    worker = crew.consume("nothing", *CALM)
    time.sleep(delay)  # the moment is what is tested
    code = worker.stop(INT)
    assert "__main__.py" not in worker.err
    assert code == -INT or "Traceback" in worker.err  # of Python's own start
    assert members(redis) == 0


def test_ctrl_c_lets_the_handler_finish_though_it_goes_to_the_whole_group(
    redis: Server, crew: Workers, tmp_path: Path
) -> None:
    produce(redis, "t", ["x"])
    log = tmp_path / "log"
    slow = script(tmp_path / "slow", f"echo begin >> {log}; sleep 1; echo end >> {log}")
    worker = crew.consume("t", *CALM, "--", slow)
    wait_until(log.exists, "the handler")
    os.killpg(worker.pid, INT)
    assert worker.wait() == -INT
    assert log.read_text() == "begin\nend\n"
    assert pending(redis, "t", 1) == 0
    assert redis.call("XLEN", stream("t", 0)) == 1


def test_a_handler_that_is_ended_while_draining_gives_its_message_back(
    redis: Server, crew: Workers, tmp_path: Path
) -> None:
    produce(redis, "t", ["x"], "--partitions", "2", "-p", "0")
    pid = tmp_path / "pid"
    slow = script(
        tmp_path / "slow", f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 60"
    )
    worker = crew.consume("t", *CALM, "--", slow)
    wait_until(pid.exists, "the handler")
    worker.send(TERM)
    wait_until(lambda: owners(redis, "t", 2)[1] is None, "it drains")
    os.kill(int(pid.read_text()), TERM)
    assert worker.wait() == 0
    assert redis.call("XLEN", stream("t", 0)) == 1
    again = mqctl(redis, "consume", "t", "-g", "g", "-e", "-F", "%s %a\n")
    assert again.stdout == b"x 1\n"


def test_work_that_outlasts_the_drain_is_stopped_and_given_back(
    redis: Server, crew: Workers, tmp_path: Path
) -> None:
    produce(redis, "t", ["x", "y"])
    mark = tmp_path / "mark"
    slow = script(tmp_path / "slow", f"touch {mark}; exec sleep 60")
    worker = crew.consume("t", *CALM, "--drain-timeout", "500ms", "--", slow)
    wait_until(mark.exists, "the handler")
    assert worker.stop(TERM, timeout=5) == 143
    assert "drain" in worker.err
    again = mqctl(redis, "consume", "t", "-g", "g", "-e", "-F", "%s %a\n")
    assert again.stdout == b"x 1\ny 1\n"


@pytest.mark.parametrize(("number", "code"), [(INT, -INT), (TERM, 143)])
def test_a_reader_that_does_not_read_holds_nothing_up_for_longer_than_the_drain(
    redis: Server, crew: Workers, number: int, code: int
) -> None:
    produce(redis, "t", ["x" * 1000] * 1000)
    worker = crew.consume(
        "t", *CALM, "--drain-timeout", "500ms", stdout=subprocess.PIPE
    )
    pipe = worker.process.stdout
    assert pipe is not None
    wait_until(lambda: _unread(pipe.fileno()) > 50_000, "a full pipe")
    assert worker.stop(number, timeout=5) == code
    assert owners(redis, "t", 1) == [None]
    again = mqctl(redis, "consume", "t", "-g", "g", "-e", "-q")
    assert len(again.stdout.splitlines()) > 900


# -- frozen -------------------------------------------------------------------


def test_a_frozen_consumer_prints_nothing_more_of_what_it_has_lost(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["before"])
    a = crew.consume("t", *QUICK, "--consumer", "a")
    wait_until(lambda: a.lines == ["before"], "the first")
    a.send(signal.SIGSTOP)
    b = crew.consume("t", *QUICK, "--consumer", "b")
    wait_until(lambda: owners(redis, "t", 1) == ["b"], "b has it")
    produce(redis, "t", ["meanwhile"])
    wait_until(lambda: b.lines == ["meanwhile"], "b reads")
    presence = f"1:{subscription_id(['t'])}:a"

    def beat() -> bytes | None:
        return redis.call("ZSCORE", "streaming:mq:members:g", presence)

    last = beat()
    a.send(signal.SIGCONT)
    wait_until(lambda: beat() not in {last, None}, "a is awake")
    produce(redis, "t", ["after"])
    wait_until(lambda: b.lines == ["meanwhile", "after"], "b goes on")
    assert a.lines == ["before"]
    assert (a.stop(), b.stop()) == (0, 0)
    assert pending(redis, "t", 1) == 0


def test_a_consumer_frozen_in_a_write_ends_it_with_the_message_it_was_at(
    redis: Server, crew: Workers
) -> None:
    numbers = [f"{i:06d}" + "x" * 1000 for i in range(400)]
    produce(redis, "t", numbers)
    a = crew.consume("t", *QUICK, "--consumer", "a", stdout=subprocess.PIPE)
    wait_until(lambda: pending(redis, "t", 1), "a read")
    pipe = a.process.stdout
    assert pipe is not None
    wait_until(lambda: _unread(pipe.fileno()) > 50_000, "a full pipe")
    a.send(signal.SIGSTOP)
    stuck = _unread(pipe.fileno())
    b = crew.consume("t", *QUICK, "--consumer", "b")
    wait_until(lambda: pending(redis, "t", 1) == 0 and b.lines, "b has done it all")
    a.send(signal.SIGCONT)
    a.send(TERM)
    read = pipe.read()
    assert a.wait() == 0
    assert read.endswith(b"x\n")
    assert len(read) - stuck <= 1007 + 4096
    assert set(b.lines) | set(read.decode().split()) == set(numbers)


def _unread(fd: int) -> int:
    import array
    import fcntl
    import termios

    size = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, size)
    return size[0]


def test_a_frozen_consumer_settles_nothing_of_what_it_has_lost(
    redis: Server, crew: Workers, tmp_path: Path
) -> None:
    produce(redis, "t", ["x"])
    mark = tmp_path / "mark"
    failing = script(tmp_path / "failing", f"touch {mark}; sleep 0.3; exit 75")
    a = crew.consume("t", *QUICK, "--consumer", "a", "--", failing)
    wait_until(mark.exists, "the handler")
    a.send(signal.SIGSTOP)
    b = crew.consume("t", *QUICK, "--consumer", "b")
    wait_until(lambda: b.lines == ["x"], "b has taken it over")
    a.send(signal.SIGCONT)
    assert a.stop() == 0
    assert b.stop() == 0
    assert redis.call("EXISTS", "streaming:mq:retry:t") == 0
    assert redis.call("XLEN", stream("t", 0)) == 1
    assert pending(redis, "t", 1) == 0
    assert redis.call("EXISTS", lease("t", 0)) == 0
