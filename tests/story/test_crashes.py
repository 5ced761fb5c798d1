"""Consumers killed at random: nothing is lost, nothing stays behind."""

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.server import Server
from tests.support.wait import wait_until
from tests.support.worker import QUICK, Worker, Workers, dead, members, pending, produce

PARTITIONS = 4
MANY = ("--max-retries", "100", "--partitions", str(PARTITIONS))


def kill_at_random(start: Callable[[], Worker], seconds: float) -> list[Worker]:
    """Keep three consumers running and kill one every now and then."""
    dice = random.Random(7)
    team = [start() for _ in range(3)]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(dice.uniform(0.05, 0.6))  # not for synchronisation: that is luck
        victim = dice.randrange(3)
        team[victim].kill()
        team[victim] = start()
    return team


@pytest.mark.parametrize(
    ("count", "seconds"),
    [(5_000, 8), pytest.param(20_000, 30, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("mode", ["print", "exec"])
def test_each_message_is_handled_however_often_consumers_are_killed(
    redis: Server, crew: Workers, tmp_path: Path, mode: str, count: int, seconds: int
) -> None:
    out = tmp_path / "out"
    out.touch()
    numbers = [str(i) for i in range(count)]
    produce(redis, "work", numbers[: count // 2], *MANY)

    def start() -> Worker:
        if mode == "print":
            with out.open("ab") as shared:
                return crew.consume(
                    "work", *QUICK, "-q", "--batch", "50", stdout=shared
                )
        options = (*QUICK, "-q", "--retry-max", "100")
        return crew.consume(
            "work", *options, "--", "sh", "-c", f"read -r n; echo $n >> {out}"
        )

    def handled() -> set[str]:
        return set(out.read_text().split())

    team = kill_at_random(start, seconds / 2)
    produce(redis, "work", numbers[count // 2 :], *MANY)
    for worker in team:
        worker.kill()
    team = kill_at_random(start, seconds / 2)
    wait_until(lambda: handled() >= set(numbers), "every message", timeout=100)
    wait_until(lambda: pending(redis, "work", PARTITIONS) == 0, "nothing pending")
    wait_until(lambda: members(redis) == 3, "all three")
    codes = {worker.stop() for worker in team}
    assert codes <= {0, -signal.SIGTERM}  # one may only be starting
    assert dead(redis, "work") == []
    assert all("Traceback" not in worker.err for worker in crew.started)
