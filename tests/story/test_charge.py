"""Orders charged by a command that sometimes fails, for a while or for good."""

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from tests.support.server import Server
from tests.support.wait import wait_until
from tests.support.worker import Workers, dead, mqctl, pending, produce, script

CHARGE = """\
read -r order
echo "$order $MQ_ATTEMPT $(date +%s%3N)" >> "$LOG"
case $order in
    *09?7) echo "bank is down" >&2; exit 75 ;;
    *0955) echo "no such account" >&2; exit 65 ;;
esac"""


def test_orders_are_charged_retried_with_growing_pauses_and_given_up(
    redis: Server, crew: Workers, tmp_path: Path
) -> None:
    orders = [f"order-{i:04d}" for i in range(1000)]
    log = tmp_path / "log"
    charge = script(tmp_path / "charge.sh", CHARGE)
    produce(redis, "orders", orders, "--partitions", "4")
    worker = crew.start(
        "consume", "orders", "-g", "g", "--", charge, env={"LOG": str(log)}
    )
    wait_until(lambda: len(dead(redis, "orders")) == 11, "11 dead", timeout=60)
    assert worker.stop() == 0
    assert pending(redis, "orders", 4) == 0

    attempts: dict[str, list[int]] = defaultdict(list)
    for line in log.read_text().splitlines():
        order, attempt, ms = line.split()
        attempts[order].append(int(ms))
        assert int(attempt) == len(attempts[order])
    assert sorted(attempts) == orders
    for order, times in attempts.items():
        pauses = [(b - a) / 1000 for a, b in pairwise(times)]
        if order.startswith("order-09") and order.endswith("7"):
            late = [p - q for p, q in zip(pauses, (1, 2, 4), strict=True)]
            assert all(0 <= seconds < 1.5 for seconds in late), (order, pauses)
        else:
            assert pauses == []

    letters = dead(redis, "orders")
    rejected = [h for h in letters if h["x-dead-reason"] == "rejected"]
    exhausted = [h for h in letters if h["x-dead-reason"] == "exhausted"]
    assert (len(rejected), len(exhausted)) == (1, 10)
    for headers in exhausted:
        assert headers["x-dead-attempts"] == "4"
        assert headers["x-dead-exit-code"] == "75"
        assert headers["x-dead-stderr"] == "bank is down\n"
    assert rejected[0]["x-dead-attempts"] == "1"
    assert rejected[0]["x-dead-exit-code"] == "65"
    assert rejected[0]["x-dead-stderr"] == "no such account\n"
    assert {h["x-dead-group"] for h in letters} == {"g"}

    done = mqctl(redis, "dlq replay-all", "orders", "--delete", "--yes")
    assert done.returncode == 0, done.stderr
    assert dead(redis, "orders") == []
    healed = mqctl(redis, "consume", "orders", "-g", "g", "-e", "-F", "%s %a\n")
    assert sorted(healed.stdout.decode().splitlines()) == [
        f"order-09{i}{end} 1" for i in range(10) for end in ("57" if i == 5 else "7")
    ]


def test_status_99_settles_the_message_and_stops(redis: Server) -> None:
    produce(redis, "orders", ["1", "2", "3"])
    done = mqctl(redis, "consume", "orders", "-g", "g", "--", "sh", "-c", "exit 99")
    assert done.returncode == 0
    rest = mqctl(redis, "consume", "orders", "-g", "g", "-e", "-o", "ndjson")
    records = [json.loads(line) for line in rest.stdout.splitlines()]
    assert [(r["payload"], r["attempt"]) for r in records] == [("2", 1), ("3", 1)]
