"""mqctl tail: the last messages, and following without gaps or repeats."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.test_admin import keys_of, mqctl, records
from tests.support import ndjson
from tests.support.seed import KEYS, LARGE, MINUTE, Seed, append, create, seed
from tests.support.server import Server, TestServer, short_directory, start_server
from tests.support.shell import environment, shell
from tests.support.wait import wait_until

Fd = pytest.CaptureFixture[bytes]


@pytest.fixture
def queue(redis: Server) -> Seed:
    return seed(redis)


def payloads(capfdbinary: Fd, server: Server, line: str, *more: str) -> list[str]:
    result = mqctl(capfdbinary, server, f"tail {line}", *more, "--delim", "\\0")
    assert result.code == 0, result.err
    return [p.decode()[:9] for p in result.out.split(b"\0")[:-1]]


def test_the_last_messages_come_in_id_order_over_all_partitions(
    queue: Seed, capfdbinary: Fd
) -> None:
    large = "x" * 9
    every = ["m50", "m45", "m40", "m30", large, "m10"]
    assert payloads(capfdbinary, queue.server, "orders") == every
    assert payloads(capfdbinary, queue.server, "orders -n 3") == every[3:]
    assert payloads(capfdbinary, queue.server, "orders -n 0") == []
    assert payloads(capfdbinary, queue.server, "orders -p 1") == ["m45", large]
    assert payloads(capfdbinary, queue.server, "orders ab -n 2") == ["m10", "plain"]


def test_ten_are_shown_unless_it_is_told_where_to_begin(
    redis: Server, capfdbinary: Fd
) -> None:
    made = Seed(redis, 1_700_000_000_000)
    create(made, "t", 1)
    every = [str(minutes) for minutes in range(500, 0, -1)]
    for minutes in every:
        append(made, "t", 0, int(minutes), minutes.encode())
    assert payloads(capfdbinary, redis, "t") == every[-10:]
    assert payloads(capfdbinary, redis, "t --from start") == every
    assert payloads(capfdbinary, redis, "t --from start -n 2") == every[-2:]
    assert payloads(capfdbinary, redis, "t -n 450") == every[-450:]
    window = f"t --from {made.id(5)} --to {made.id(3)}"
    assert payloads(capfdbinary, redis, window) == ["5", "4", "3"]
    assert payloads(capfdbinary, redis, "t --from last:3") == ["3", "2", "1"]
    assert payloads(capfdbinary, redis, "t --from end") == []
    moment = f"@{made.now - 5 * MINUTE - 1}"
    assert payloads(capfdbinary, redis, "t --to", moment) == every[-15:-5]


def test_filters_choose_the_last_that_match(queue: Seed, capfdbinary: Fd) -> None:
    append(queue, "orders", 0, 0, b"[urgent]\nx", key=b"K*", headers={"tag": "red"})
    server = queue.server
    assert payloads(capfdbinary, server, "orders --where-key k4? -n 1") == ["m40"]
    assert payloads(capfdbinary, server, "orders --where-key K*") == ["[urgent]\n"]
    assert payloads(capfdbinary, server, "orders --where-header tag=r*") == [
        "[urgent]\n"
    ]
    assert payloads(capfdbinary, server, "orders --grep", "^m[45]5$") == ["m45"]
    assert payloads(capfdbinary, server, "orders --grep", "nothing") == []
    assert mqctl(capfdbinary, server, "tail orders --grep (").code == 2
    assert mqctl(capfdbinary, server, "tail orders --where-header tag").code == 2


def test_tail_leaves_no_trace(queue: Seed, capfdbinary: Fd) -> None:
    before = keys_of(queue.server)
    groups = queue.call("XINFO", "GROUPS", KEYS.partition("orders", 0))
    assert len(payloads(capfdbinary, queue.server, "orders --from start")) == 6
    assert keys_of(queue.server) == before
    assert queue.call("XINFO", "GROUPS", KEYS.partition("orders", 0)) == groups


def test_the_envelope_is_that_of_all_commands(queue: Seed, capfdbinary: Fd) -> None:
    result = mqctl(capfdbinary, queue.server, "tail orders -n 1 -o ndjson")
    ndjson.check("tail", result.out)
    dead = mqctl(capfdbinary, queue.server, "tail orders --dlq -n 1 -o ndjson")
    ndjson.check("tail_dlq", dead.out)


@pytest.mark.parametrize("output", ["table", "ndjson", "json", "csv", "raw", "none"])
def test_every_output_format_is_obeyed(
    queue: Seed, capfdbinary: Fd, output: str
) -> None:
    result = mqctl(capfdbinary, queue.server, f"tail orders -o {output}")
    assert result.code == 0, result.err
    assert bool(result.out) is (output != "none")
    if output == "json":
        assert len(json.loads(result.out)) == 6


def test_what_cannot_be_shown_as_it_was_is_shown_with_a_warning(
    queue: Seed, capfdbinary: Fd
) -> None:
    for ref in queue.call("SMEMBERS", KEYS.payload_index("orders")):
        queue.call("DEL", ref)
    stream = KEYS.partition("orders", 0)
    queue.call("XADD", stream, "*", "payload", "odd", "timestamp", "yesterday")
    result = mqctl(capfdbinary, queue.server, "tail orders -n 3 -o ndjson")
    assert [row["payload"] for row in records(result)] == ["", "m10", "odd"]
    assert f"the body of {queue.id(15)} is gone" in result.err
    assert "no readable timestamp" in result.err


def test_a_partition_out_of_range_is_a_usage_error(
    queue: Seed, capfdbinary: Fd
) -> None:
    result = mqctl(capfdbinary, queue.server, "tail orders -p 2")
    assert result.code == 2
    assert "0 to 1" in result.err
    assert mqctl(capfdbinary, queue.server, "tail orders -p x").code == 2
    assert mqctl(capfdbinary, queue.server, "tail orders -f --to end").code == 2


def test_a_reader_that_has_enough_ends_it_quietly(queue: Seed) -> None:
    for line in ("mqctl tail orders | head -1", "mqctl tail orders -f | head -1"):
        done = shell(line, queue.server)
        assert (done.code, done.out, done.err) == (0, b"m50\n", "")


@contextmanager
def following(
    server: Server, *arguments: str, output: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run `tail -f` into a file; killed at the end when it still runs."""
    with (
        output.open("wb") as out,
        subprocess.Popen(
            [sys.executable, "-m", "mqctl", "tail", "-f", *arguments],
            env=environment(server.url),
            stdout=out,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def seen(output: Path) -> Callable[[int], bool]:
    return lambda count: output.read_bytes().count(b"\n") >= count


def test_following_shows_each_message_once_and_in_order(
    either: Seed, tmp_path: Path
) -> None:
    output, number = tmp_path / "out", 0
    for _ in range(20):
        _store(either, number)
        number += 1
    with following(either.server, "t", "-n", "5", output=output):
        for _ in range(400):
            _store(either, number)
            number += 1
        # it begins somewhere in the middle of that
        wait_until(
            lambda: output.read_bytes().endswith(b"419\n"), "the last", timeout=20
        )
    shown = [int(line) for line in output.read_text().split()]
    assert shown == list(range(shown[0], 420))
    assert shown[0] >= 15


def _store(made: Seed, number: int) -> None:
    stream = KEYS.partition("t", number % 2)
    fields = ("payload", number, "timestamp", "2026-01-01T00:00:00Z")
    made.call("XADD", stream, f"{made.now + number}-0", *fields)


@pytest.fixture(params=["server", "cluster"])
def either(request: pytest.FixtureRequest) -> Seed:
    """Topic t with two partitions, on a plain server and on a cluster."""
    name = "redis" if request.param == "server" else "cluster_redis"
    server: Server = request.getfixturevalue(name)
    made = Seed(server, 1_700_000_000_000)
    create(made, "t", 2)
    return made


def test_following_from_the_start_is_in_order_over_full_pages(
    redis: Server, tmp_path: Path
) -> None:
    made = Seed(redis, 1_700_000_000_000)
    create(made, "t", 2)
    output = tmp_path / "out"
    with following(redis, "t", "-n", "0", output=output) as process:
        wait_until(lambda: b"xread" in redis.call("CLIENT", "LIST"), "it waits")
        os.kill(process.pid, signal.SIGSTOP)
        for number in range(1500):  # far more on 0 than on 1, and older
            index = 0 if number < 1000 or number % 5 else 1
            fields = ("payload", number, "timestamp", "2026-01-01T00:00:00Z")
            stream = KEYS.partition("t", index)
            redis.call("XADD", stream, f"{made.now + number}-0", *fields)
        os.kill(process.pid, signal.SIGCONT)
        wait_until(lambda: seen(output)(1500), "all of them", timeout=20)
    shown = [int(line) for line in output.read_text().split()]
    assert sorted(shown) == list(range(1500))
    assert shown[1:] == sorted(shown[1:])  # the first round may have had one alone


def test_a_filter_holds_while_following(redis: Server, tmp_path: Path) -> None:
    made = Seed(redis, 1_700_000_000_000)
    create(made, "t", 1)
    output = tmp_path / "out"
    with following(redis, "t", "--grep", "7$", output=output):
        for number in range(30):
            append(made, "t", 0, 30 - number, b"%d" % number)
        wait_until(lambda: seen(output)(3), "three of them")
    assert output.read_text().split() == ["7", "17", "27"]


def test_a_partition_that_is_added_is_followed_from_its_beginning(
    redis: Server, tmp_path: Path
) -> None:
    made = Seed(redis, 1_700_000_000_000)
    create(made, "t", 1)
    output = tmp_path / "out"
    with following(redis, "t", output=output):
        wait_until(lambda: b"xread" in redis.call("CLIENT", "LIST"), "it waits")
        create(made, "t", 2)
        append(made, "t", 1, 1, b"new")
        wait_until(lambda: seen(output)(1), "the new partition", timeout=15)
    assert output.read_text() == "new\n"


def test_dead_letters_can_be_followed(queue: Seed, tmp_path: Path) -> None:
    from tests.support.seed import bury

    output = tmp_path / "out"
    with following(queue.server, "orders", "--dlq", "-n", "0", output=output):
        wait_until(lambda: b"xread" in queue.call("CLIENT", "LIST"), "it waits")
        bury(queue, "orders", 1, payload=b"dead")
        wait_until(lambda: seen(output)(1), "the dead letter")
    assert output.read_text() == "dead\n"


def test_a_server_that_dies_and_comes_back_leaves_no_gap_and_no_repeat(
    tmp_path: Path,
) -> None:
    output = tmp_path / "out"
    with short_directory() as directory:
        server = start_server(directory)
        try:
            made = Seed(server, 1_700_000_000_000)
            create(made, "t", 2)
            with following(server, "t", output=output) as process:
                for number in range(10):
                    _store(made, number)
                wait_until(lambda: seen(output)(10), "the first ten")
                server.restart()
                for number in range(10, 20):
                    _store(made, number)
                wait_until(lambda: seen(output)(20), "the others", timeout=30)
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=10)
        finally:
            server.kill()
    assert [int(line) for line in output.read_text().split()] == list(range(20))
    assert process.returncode == -signal.SIGINT
    assert err.decode().count("trying again") == 1
    assert b"Traceback" not in err


def test_an_interrupt_ends_following_and_closes_the_document(
    redis: Server, tmp_path: Path
) -> None:
    made = Seed(redis, 1_700_000_000_000)
    create(made, "t", 1)
    append(made, "t", 0, 1, b"x")
    output = tmp_path / "out"
    with following(redis, "t", "-o", "json", output=output) as process:
        wait_until(lambda: b"xread" in redis.call("CLIENT", "LIST"), "it waits")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == -signal.SIGINT
    assert [row["payload"] for row in json.loads(output.read_bytes())] == ["x"]


def test_a_large_body_is_followed_whole(redis: Server, tmp_path: Path) -> None:
    from tests.support.seed import append_large

    made = Seed(redis, 1_700_000_000_000)
    create(made, "t", 1)
    output = tmp_path / "out"
    with following(redis, "t", output=output):
        append_large(made, "t", 0, 1)
        wait_until(lambda: seen(output)(1), "the body")
    assert output.read_bytes() == LARGE + b"\n"


@pytest.mark.cluster
def test_the_last_messages_are_found_where_partitions_have_slots_of_their_own(
    cluster_redis: TestServer, capfdbinary: Fd
) -> None:
    seed(cluster_redis)
    assert payloads(capfdbinary, cluster_redis, "orders -n 2") == ["x" * 9, "m10"]
