"""What becomes of a message that fails: sent again, left pending, waited for."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.server import Server
from tests.support.shell import environment, shell
from tests.support.wait import wait_until

STREAM = "stream:topic:t:p:0"
SCRIPT = """#!/bin/sh
read x
echo "$x $MQ_ATTEMPT" >> log
[ "$x" = 3 ] && [ "$MQ_ATTEMPT" -lt 4 ] && exit 1
[ "$x" = 5 ] && exit 1
exit 0
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    script = tmp_path / "work.sh"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    return tmp_path


def log(work: Path) -> list[str]:
    found = work / "log"
    return found.read_text().splitlines() if found.exists() else []


@pytest.mark.parametrize("mode", ["requeue", "pending", "in-place"])
def test_every_mode_tries_as_often_as_allowed_and_then_buries(
    redis: Server, work: Path, mode: str
) -> None:
    shell("seq 6 | mqctl produce t", redis)

    done = shell(
        f"mqctl consume t -g g --retry-mode {mode} --backoff 60ms,120ms"
        " --idle-exit 600ms -- ./work.sh",
        redis,
        cwd=work,
    )

    assert done.code == 0, done.err
    tries = [line for line in log(work) if line[0] in "35"]
    assert sorted(tries) == [f"{x} {n}" for x in (3, 5) for n in (1, 2, 3, 4)]
    assert "5 acknowledged, 6 retried, 1 dead" in done.err
    assert redis.call("XPENDING", STREAM, "g")[0] == 0
    assert redis.call("XLEN", "stream:topic:t:dlq") == 1
    assert redis.call("EXISTS", "streaming:mq:kept:t:g:0") == 0


def test_in_place_nothing_overtakes_a_message_that_fails(
    redis: Server, work: Path
) -> None:
    shell("seq 6 | mqctl produce t", redis)

    shell(
        "mqctl consume t -g g --ordered --backoff 30ms --idle-exit 300ms -- ./work.sh",
        redis,
        cwd=work,
    )

    order = [line.split()[0] for line in log(work)]
    assert order == sorted(order)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_wait_outlives_its_consumer(redis: Server, work: Path, how: int) -> None:
    shell("seq 6 | mqctl produce t", redis)
    line = (
        "mqctl consume t -g g --ordered --backoff 50ms,2s,50ms -q --idle-exit 3s"
        " --lease-ttl 500ms --renew 100ms -- ./work.sh"
    )
    first = subprocess.Popen(
        ["bash", "-c", f"exec {line}"], cwd=work, env=environment(redis.url)
    )
    kept = "streaming:mq:kept:t:g:0"
    wait_until(lambda: "3 2" in log(work), "the second attempt")
    wait_until(
        lambda: redis.call("HGET", kept, "attempts") == b"2", "the wait is noted"
    )
    first.send_signal(how)
    first.wait(10)
    due = int(redis.call("HGET", kept, "due_at_ms"))

    shell(line, redis, cwd=work)

    assert due <= int(redis.call("TIME")[0]) * 1000 + 1000
    assert [x for x in log(work) if x[0] in "34"] == ["3 1", "3 2", "3 3", "3 4", "4 1"]
    order = [x.split()[0] for x in log(work)]
    assert order == sorted(order)


def test_claiming_only_reads_nothing_new_and_off_takes_nothing_over(
    redis: Server,
) -> None:
    shell("seq 4 | mqctl produce t", redis)
    redis.call("XGROUP", "CREATE", STREAM, "g", "0")
    redis.call("XREADGROUP", "GROUP", "g", "gone", "COUNT", 2, "STREAMS", STREAM, ">")

    off = shell(
        "mqctl consume t -g g --claim off --claim-idle 1ms --max-time 1s", redis
    )
    redis.call("XADD", STREAM, "*", "payload", "new")
    only = shell(
        "mqctl consume t -g g --claim only --claim-idle 1ms --max-time 1s", redis
    )

    assert off.out == b"3\n4\n"
    assert only.out == b"1\n2\n"


def test_max_attempts_is_retries_plus_one(redis: Server, work: Path) -> None:
    shell("mqctl produce t 5 --max-retries 9", redis)

    shell(
        "mqctl consume t -g g --max-attempts 2 --retry-base 20ms --idle-exit 300ms"
        " -- ./work.sh",
        redis,
        cwd=work,
    )

    assert log(work) == ["5 1", "5 2"]
