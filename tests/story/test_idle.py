"""What a consumer costs when there is nothing to do, and how soon it wakes."""

import statistics
import time
from pathlib import Path

from mqctl.core.handler import SUCCESS, Outcome, Result
from mqctl.core.message import Delivery
from mqctl.core.options import ConsumerOptions
from mqctl.engine.consumer import Consumer
from mqctl.engine.session import Session
from mqctl.store.url import parse_url
from tests.support.server import Server
from tests.support.wait import wait_until
from tests.support.worker import (
    Worker,
    Workers,
    pending,
    produce,
    script,
    stream,
    until_held,
)


def cpu_seconds(worker: Worker) -> float:
    fields = Path(f"/proc/{worker.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def commands(server: Server) -> int:
    return int(server.info()["total_commands_processed"])


def cost(server: Server, worker: Worker, seconds: float) -> tuple[float, float]:
    """Return commands per second at the server and the share of a CPU."""
    before = commands(server), cpu_seconds(worker)
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > end, "time to pass", timeout=seconds + 5)
    after = commands(server), cpu_seconds(worker)
    return (after[0] - before[0]) / seconds, (after[1] - before[1]) / seconds


def test_an_idle_consumer_costs_next_to_nothing(redis: Server, crew: Workers) -> None:
    produce(redis, "t", ["x"], "--partitions", "8")
    worker = crew.consume("t")
    wait_until(lambda: worker.lines == ["x"], "x")
    until_held(redis, "t", 8)
    rate, share = cost(redis, worker, 5)
    assert rate < 60  # eight leases and frontiers looked at, once a second
    assert share < 0.05


def test_a_consumer_that_waits_for_its_handler_costs_next_to_nothing(
    redis: Server, crew: Workers, tmp_path: Path
) -> None:
    produce(redis, "t", [str(i) for i in range(50)], "--partitions", "2")
    slow = script(tmp_path / "slow", "exec sleep 60")
    options = ("--claim-idle", "1s", "--claim-interval", "500ms", "--batch", "20")
    worker = crew.consume("t", *options, "--workers", "1", "--", slow)
    wait_until(lambda: pending(redis, "t", 2) >= 30, "both partitions are read")
    rate, share = cost(redis, worker, 3)
    assert rate < 60
    assert share < 0.05


def test_a_consumer_at_its_bound_costs_next_to_nothing(
    redis: Server, crew: Workers, tmp_path: Path
) -> None:
    produce(redis, "t", [str(i) for i in range(50)], "--partitions", "4")
    mark = tmp_path / "mark"
    slow = script(tmp_path / "slow", f"touch {mark}; exec sleep 60")
    worker = crew.consume("t", "--max-in-flight", "1", "--", slow)
    wait_until(mark.exists, "the handler")
    rate, share = cost(redis, worker, 3)
    assert rate < 60
    assert share < 0.05


def test_entries_that_others_have_read_do_not_keep_it_awake(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["x"])
    worker = crew.consume("t")
    wait_until(lambda: worker.lines == ["x"], "x")
    for i in range(20):
        redis.call("XADD", stream("t", 0), "*", "payload", str(i))
        redis.call(
            *("XREADGROUP", "GROUP", "g", "stranger", "COUNT", "1"),
            *("STREAMS", stream("t", 0), ">"),
        )
    rate, share = cost(redis, worker, 3)
    assert rate < 80
    assert share < 0.05


class Failing:
    """Fails once for each message and remembers how late it was called again."""

    def __init__(self, delay_ms: int) -> None:
        self._delay_ms = delay_ms
        self._failed: dict[str, float] = {}
        self.late: list[float] = []

    def __call__(self, delivery: Delivery) -> Result:
        now = time.monotonic()
        message = f"{delivery.message.partition} {delivery.message.original_id}"
        if message not in self._failed:
            self._failed[message] = now
            return Result(Outcome.RETRY, delay_ms=self._delay_ms)
        self.late.append(now - self._failed[message] - self._delay_ms / 1000)
        return SUCCESS

    def drain(self) -> None:
        return

    def kill(self) -> None:
        return


def test_a_retry_is_handled_at_its_time_by_the_consumer_that_scheduled_it(
    redis: Server,
) -> None:
    produce(redis, "t", [str(i) for i in range(10)], "--partitions", "2")
    session = Session.open(parse_url(redis.url, tls=None))
    handler = Failing(delay_ms=700)
    options = ConsumerOptions(("t",), "g", max_messages=20)
    Consumer(session, options, handler=handler).run()
    session.close()
    assert len(handler.late) == 10
    assert min(handler.late) >= 0
    assert statistics.median(handler.late) < 0.05


def test_a_message_is_handled_the_moment_it_is_there(
    redis: Server, crew: Workers
) -> None:
    produce(redis, "t", ["first"], "--partitions", "12")
    worker = crew.consume("t", "-F", "%s %T\n")
    until_held(redis, "t", 12)
    lateness = []
    for i in range(10):
        lines = len(worker.lines)
        sent = time.monotonic()
        redis.call("XADD", stream("t", i), "*", "payload", str(i))
        wait_until(lambda n=lines: len(worker.lines) > n, "the message")
        lateness.append(time.monotonic() - sent)
    assert statistics.median(lateness) < 0.2
    assert worker.stop() == 0
