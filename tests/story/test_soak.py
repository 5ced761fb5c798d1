"""Ten minutes at 500 messages a second, consumers killed every few seconds."""

import os
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support.server import Server
from tests.support.shell import environment
from tests.support.wait import wait_until
from tests.support.worker import QUICK, Worker, Workers, dead, pending

PARTITIONS = 8
SECONDS = int(os.environ.get("MQCTL_SOAK_SECONDS", "600"))
RATE = 500


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 300)
def test_nothing_is_lost_in_ten_minutes_of_kills(
    redis: Server, crew: Workers, tmp_path: Path
) -> None:
    out, dice = tmp_path / "out", random.Random(11)
    out.touch()
    count = RATE * SECONDS
    feeding = (
        f'seq {count} | awk \'{{print "k" NR % 97 " " NR}}\' | mqctl produce soak'
        f" -K ' ' --partitions {PARTITIONS} --rate {RATE}/s"
    )
    producing = subprocess.Popen(
        ["bash", "-c", feeding],
        env=environment(redis.url),
    )

    def start() -> Worker:
        with out.open("ab") as shared:
            return crew.consume(
                "soak", *QUICK, "-q", "--keep", "1000", "--keep-interval", "1s",
                stdout=shared,
            )  # fmt: skip

    team = [start() for _ in range(4)]
    kills = 0
    while producing.poll() is None:
        time.sleep(dice.uniform(1, 4))  # not for synchronisation: that is luck
        victim = dice.randrange(len(team))
        team[victim].kill()
        team[victim] = start()
        kills += 1
    assert producing.returncode == 0

    wait_until(lambda: pending(redis, "soak", PARTITIONS) == 0, "settled", timeout=60)
    wait_until(
        lambda: len(set(out.read_text().split())) == count, "every message", timeout=60
    )
    seen = Counter(out.read_text().split())
    stored = sum(
        redis.call("XLEN", f"stream:topic:soak:p:{i}") for i in range(PARTITIONS)
    )
    repeated = sum(seen.values()) - count
    print(f"{count} messages, {kills} kills, {repeated} repeated, {stored} stored")  # noqa: T201
    assert set(seen) == {str(n) for n in range(1, count + 1)}
    assert dead(redis, "soak") == []
    assert stored <= PARTITIONS * 2000
