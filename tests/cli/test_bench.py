"""mqctl bench as a user runs it: records, signals, what is said."""

import csv
import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator

import pytest

from mqctl.cli.main import run
from tests.support.server import Server
from tests.support.wait import wait_until
from tests.support.worker import Workers, argv, mqctl, workers

FIELDS = [
    "mode",
    "messages",
    "size_bytes",
    "partitions",
    "batch",
    "producers",
    "consumers",
    "rate_per_s",
    "duration_ms",
    "messages_per_s",
    "mb_per_s",
    "latency_p50_us",
    "latency_p90_us",
    "latency_p99_us",
    "latency_p999_us",
    "latency_max_us",
    "duplicates",
    "lost",
    "errors",
    "memory_bytes_per_message",
    "limit_messages_per_s",
    "ratio",
    "server_version",
    "started_at",
    "started_at_ms",
]
SMALL = ("--messages", "200", "--size", "100B", "--partitions", "2")

Fd = pytest.CaptureFixture[bytes]


@pytest.fixture
def started(redis: Server) -> Iterator[Workers]:
    with workers(redis) as made:
        yield made


def measured(redis: Server, capfdbinary: Fd, *arguments: str) -> tuple[bytes, bytes]:
    assert run(["bench", *arguments, *SMALL, "-u", redis.url]) == 0
    return capfdbinary.readouterr()


# -- records ------------------------------------------------------------------


def test_json_is_one_object_with_the_promised_fields(
    redis: Server, capfdbinary: Fd
) -> None:
    out, err = measured(redis, capfdbinary, "produce", "-o", "json")

    record = json.loads(out)
    assert list(record) == FIELDS
    assert (record["mode"], record["messages"], record["batch"]) == (
        "produce",
        200,
        500,
    )
    assert record["limit_messages_per_s"] is record["ratio"] is None
    assert err == b""


def test_a_pipe_gets_ndjson(redis: Server, capfdbinary: Fd) -> None:
    out, _ = measured(redis, capfdbinary)

    (line,) = out.splitlines()
    assert list(json.loads(line)) == FIELDS
    assert json.loads(line)["mode"] == "e2e"


def test_what_the_environment_says_to_other_commands_does_not_bend_it(
    redis: Server, capfdbinary: Fd, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"KEEP": "100000", "BATCH": "1", "RATE": "1/s"}.items():
        monkeypatch.setenv(f"MQCTL_{name}", value)

    out, _ = measured(redis, capfdbinary, "produce")

    record = json.loads(out)
    assert (record["batch"], record["rate_per_s"]) == (500, None)
    assert redis.call("KEYS", "*") == []


def test_csv_has_a_header_of_the_same_names(redis: Server, capfdbinary: Fd) -> None:
    out, _ = measured(redis, capfdbinary, "consume", "-o", "csv")

    header, row = csv.reader(out.decode().splitlines())
    assert header == FIELDS
    assert dict(zip(header, row, strict=True))["messages"] == "200"


def test_a_table_names_every_field(redis: Server, capfdbinary: Fd) -> None:
    out, _ = measured(redis, capfdbinary, "-o", "table")

    names = [
        line.split("  ")[0].replace(" ", "_") for line in out.decode().splitlines()
    ]
    assert names == [
        name.replace("duration_ms", "duration")
        for name in FIELDS
        if name != "started_at_ms"
    ]


# -- usage --------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["--rate", "100"],
        ["--size", "10B"],
        ["--duration", "10"],
        ["consume", "--rate", "100/s"],
        ["--consumers", "5"],
        ["sideways"],
    ],
)
def test_what_cannot_be_meant_is_refused_before_connecting(
    words: list[str], capfdbinary: Fd
) -> None:
    assert run(["bench", "-u", "redis://203.0.113.1", *words]) == 2
    out, err = capfdbinary.readouterr()
    assert out == b""
    assert err.startswith(b"mqctl: ")


def test_no_server_is_69(tmp_path_factory: pytest.TempPathFactory) -> None:
    nowhere = Server(tmp_path_factory.mktemp("no") / "s")

    done = mqctl(nowhere, "bench")

    assert done.returncode == 69
    assert done.stderr.startswith(b"mqctl: cannot reach ")


# -- signals ------------------------------------------------------------------


def until_full(server: Server) -> None:
    def filled() -> bool:
        streams = server.call("KEYS", "stream:topic:bench-*")
        return any(server.call("XLEN", key) for key in streams)

    wait_until(filled, "stored messages", 30)


def until_alone(group: int) -> None:
    def gone() -> bool:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return False

    wait_until(gone, "the end of all processes")


@pytest.mark.parametrize("mode", ["produce", "consume", "e2e"])
def test_ctrl_c_leaves_no_key_and_no_process(
    redis: Server, started: Workers, mode: str
) -> None:
    endless = ("--messages", "100000000", "--size", "100B", "--producers", "2")
    worker = started.start("bench", mode, *endless)
    until_full(redis)

    os.killpg(worker.pid, signal.SIGINT)

    assert worker.wait() == -signal.SIGINT
    assert redis.call("KEYS", "*") == []
    assert (worker.out, worker.err) == (b"", "mqctl: stopped by a signal\n")
    until_alone(worker.pid)


def test_two_ctrl_c_leave_no_key_either(redis: Server, started: Workers) -> None:
    worker = started.start("bench", "--rate", "500/s", "--duration", "60s")
    until_full(redis)

    os.killpg(worker.pid, signal.SIGINT)
    os.killpg(worker.pid, signal.SIGINT)

    assert worker.wait() == -signal.SIGINT
    assert redis.call("KEYS", "*") == []


def test_terminated_it_exits_with_143(redis: Server, started: Workers) -> None:
    worker = started.start("bench", "--rate", "500/s", "--duration", "60s")
    until_full(redis)

    assert worker.stop(signal.SIGTERM) == 143
    assert redis.call("KEYS", "*") == []


def test_processes_do_not_outlive_it(redis: Server, started: Workers) -> None:
    worker = started.start("bench", "--rate", "500/s", "--duration", "60s")
    until_full(redis)

    worker.kill()

    until_alone(worker.pid)
    assert worker.err == ""


# -- progress -----------------------------------------------------------------


def test_a_terminal_sees_how_far_it_is(redis: Server) -> None:
    ours, theirs = pty.openpty()
    try:
        command = argv(redis, "bench", "--rate", "100/s", "--duration", "1500ms")
        subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=theirs, check=True, timeout=60
        )
        seen = os.read(ours, 1 << 16).decode()
    finally:
        os.close(ours)
        os.close(theirs)

    assert "\rsending: " in seen
    assert seen.endswith("\r")
    assert not seen.split("\r")[-2].strip()
