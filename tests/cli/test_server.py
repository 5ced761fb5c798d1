"""mqctl server: start, status, stop, as a user sees them."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqctl.store import embedded
from tests.support.shell import Result, shell


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A place for local servers of this test's own; all stopped at the end."""
    yield tmp_path
    for name in ("local", "local:other"):
        env = {"MQCTL_DATA_DIR": str(tmp_path)}
        embedded.stop(embedded.locate(name, env), 20)


def mqctl(home: Path, line: str, **env: str) -> Result:
    return shell(f"mqctl {line}", "local", MQCTL_DATA_DIR=str(home), **env)


def test_the_first_command_starts_a_server_and_says_so_once(home: Path) -> None:
    first = mqctl(home, "produce t x --print ndjson")
    second = mqctl(home, "produce t y")

    assert json.loads(first.out)["status"] == "stored"
    assert first.err == (
        "mqctl: started the local server; it stays until: mqctl server stop\n"
    )
    assert (second.code, second.err) == (0, "")


def test_a_quiet_first_command_says_nothing(home: Path) -> None:
    result = mqctl(home, "produce t x -q")

    assert (result.code, result.err, result.out) == (0, "", b"")


def test_status_tells_what_runs_and_stop_ends_it(home: Path) -> None:
    started = mqctl(home, "server start --fsync everysec")
    status = mqctl(home, "server status -o ndjson")
    stopped = mqctl(home, "server stop")
    after = mqctl(home, "server status -o ndjson")
    again = mqctl(home, "server stop")

    told = json.loads(status.out)
    assert list(told) == [
        *("running", "pid", "dir", "socket", "url", "version", "fsync", "keys"),
        *("memory_bytes", "uptime_ms", "started_at", "started_at_ms"),
    ]
    assert (told["running"], told["fsync"], told["url"]) == (True, "everysec", "local")
    assert f"pid {told['pid']}" in started.err
    assert (stopped.code, again.code) == (0, 0)
    assert stopped.err == "mqctl: the local server stopped\n"
    assert again.err == "mqctl: no local server runs\n"
    assert after.code == 4
    assert json.loads(after.out)["running"] is False


def test_what_was_stored_is_there_after_stop_and_start(home: Path) -> None:
    mqctl(home, "produce t one two -q")
    mqctl(home, "server stop -q")

    read = mqctl(home, "consume t -g g -e -q")

    assert read.out == b"one\ntwo\n"


def test_a_second_start_keeps_what_runs_and_says_how_it_differs(home: Path) -> None:
    mqctl(home, "server start")

    again = mqctl(home, "server start --fsync no")

    assert again.code == 0
    assert "runs already" in again.err
    assert "it runs with fsync always; stop it first to change that" in again.err


def test_the_data_is_private_and_where_path_says(home: Path) -> None:
    mqctl(home, "produce t x -q")

    directory = Path(os.fsdecode(mqctl(home, "server path").out.rstrip(b"\n")))

    assert directory.is_relative_to(home)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert (directory / "appendonlydir").is_dir()


def test_named_servers_share_nothing(home: Path) -> None:
    mqctl(home, "produce t x -q")

    other = mqctl(home, "consume t -g g -e -u local:other")

    assert other.code == 4
    status = json.loads(mqctl(home, "server status -o json -u local:other").out)
    assert status["url"] == "local:other"


def test_logs_are_the_last_lines_of_the_server(home: Path) -> None:
    before = mqctl(home, "server logs")
    mqctl(home, "server start -q")

    lines = mqctl(home, "server logs -n 2").out.decode().splitlines()

    assert (before.code, before.out) == (0, b"")
    assert len(lines) == 2
    assert "ready to accept connections" in " ".join(lines).lower()


def test_looking_starts_nothing(home: Path) -> None:
    for line in ("server status", "server path", "server logs", "--help", "produce -h"):
        mqctl(home, line)

    assert list(home.iterdir()) == []


def test_a_server_elsewhere_is_not_managed_here(home: Path) -> None:
    result = mqctl(home, "server stop -u redis://127.0.0.1:1")

    assert result.code == 2
    assert result.err.endswith("hint: --url local or --url local:NAME\n")
