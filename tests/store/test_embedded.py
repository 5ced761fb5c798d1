import dataclasses
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mqctl.core.errors import BadConfig, TimedOut, Unreachable
from mqctl.store import embedded
from mqctl.store.embedded import Instance, Started
from tests.support.program import program_that, real_program
from tests.support.server import Server, short_directory
from tests.support.wait import wait_until

STARTER = """
import os, sys
from mqctl.store import embedded
instance = embedded.locate(sys.argv[1], os.environ)
print("ready", flush=True)
sys.stdin.readline()
embedded.ensure(instance, on_start=lambda new: print("started", new.pid, flush=True))
print("up", flush=True)
sys.stdin.readline()
"""


class Starter:
    """Another process that calls ensure(): when told to, and then stays."""

    def __init__(self, spec: str, **env: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", STARTER, spec],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **env},
            text=True,
            start_new_session=True,
        )
        assert self.line() == "ready"

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def go(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def signal_all(self, number: signal.Signals) -> None:
        """Signal it with all that runs in its terminal's place."""
        os.killpg(self.process.pid, number)
        self.process.wait(timeout=20)

    def finish(self) -> list[str]:
        """Let it end; return the lines it had still to say."""
        out, _ = self.process.communicate("\n", timeout=60)
        assert self.process.returncode == 0
        return out.splitlines()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def starters() -> Iterator[list[Starter]]:
    made: list[Starter] = []
    yield made
    for starter in made:
        starter.close()


@pytest.fixture
def instance() -> Iterator[Instance]:
    with short_directory() as base:
        here = embedded.locate(f"local:{base / 'd'}", os.environ)
        yield here
        embedded.stop(here, 20)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[int]:
    """A descriptor: servers behind the gate start when a line is written to it."""
    os.mkfifo(tmp_path / "gate")
    opened = os.open(tmp_path / "gate", os.O_RDWR)
    yield opened
    os.write(opened, b"\n\n\n")
    os.close(opened)


@pytest.fixture
def gated(tmp_path: Path) -> str:
    """A server program that waits behind the gate."""
    wait = f'read line <{tmp_path / "gate"}; exec {real_program()} "$@"'
    return str(program_that(tmp_path / "gated", then=wait))


def server_of(instance: Instance) -> Server:
    return Server(instance.socket)


def processes(instance: Instance) -> int:
    """Count the server processes on the instance's socket."""
    listed = subprocess.run(
        ["ps", "-axwwo", "args="], capture_output=True, text=True, check=True
    )
    return sum(str(instance.socket) in line for line in listed.stdout.splitlines())


def ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def kill_server(instance: Instance) -> None:
    pid = int(server_of(instance).info()["process_id"])
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: ended(pid), "the server's end")


# Starting


def test_a_server_starts_once_and_tells_it_once(instance: Instance) -> None:
    told: list[Started] = []
    embedded.ensure(instance, on_start=told.append)
    embedded.ensure(instance, on_start=told.append)
    assert [new.pid for new in told] == [embedded.status(instance).pid]
    assert told[0].instance == instance
    assert told[0].version == embedded.status(instance).version
    assert processes(instance) == 1


@pytest.mark.parametrize("count", [2, 10])
def test_simultaneous_starters_get_one_server(
    instance: Instance, starters: list[Starter], count: int
) -> None:
    starters.extend(Starter(instance.url) for _ in range(count))
    for starter in starters:
        starter.go()
    said = [line for starter in starters for line in starter.finish()]
    assert said.count("up") == count
    pid = embedded.status(instance).pid
    assert [line for line in said if line != "up"] == [f"started {pid}"]
    assert processes(instance) == 1


def test_threads_that_start_at_once_get_one_server(instance: Instance) -> None:
    told: list[Started] = []
    threads = [
        threading.Thread(
            target=embedded.ensure, args=(instance,), kwargs={"on_start": told.append}
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(told) == 1
    assert processes(instance) == 1


def test_a_starter_killed_in_mid_start_does_not_lead_to_two_servers(
    instance: Instance, starters: list[Starter], gate: int, gated: str
) -> None:
    first = Starter(instance.url, MQCTL_SERVER_BIN=gated)
    starters.append(first)
    first.go()
    wait_until(lambda: processes(instance) == 1, "the server waiting at the gate")
    first.signal_all(signal.SIGKILL)
    second = Starter(instance.url)
    starters.append(second)
    second.go()
    with pytest.raises(Unreachable, match="lives but has not answered"):
        embedded.ensure(instance, timeout=0.2)
    os.write(gate, b"\n")
    assert second.finish() == ["up"]
    assert processes(instance) == 1


def test_a_stale_socket_and_pid_file_are_no_obstacle(instance: Instance) -> None:
    embedded.ensure(instance)
    kill_server(instance)
    assert instance.socket.exists()
    assert instance.pidfile.exists()
    embedded.ensure(instance)
    assert server_of(instance).answers


def test_a_file_in_the_sockets_place_is_no_obstacle(instance: Instance) -> None:
    instance.dir.mkdir(mode=0o700)
    instance.socket.write_text("left over")
    embedded.ensure(instance)
    assert server_of(instance).answers


def test_a_stranger_in_the_pid_file_is_never_signalled(instance: Instance) -> None:
    stranger = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE
    )
    try:
        instance.dir.mkdir(mode=0o700)
        instance.pidfile.write_text(f"{stranger.pid}\n")
        assert embedded.stop(instance, 5) is False
        embedded.ensure(instance)
        instance.pidfile.write_text(f"{stranger.pid}\n")
        assert embedded.stop(instance, 20) is True
        assert stranger.poll() is None
    finally:
        stranger.communicate(b"\n", timeout=20)
    assert stranger.returncode == 0


def test_finding_a_server_loads_nothing_that_starts_one(instance: Instance) -> None:
    embedded.ensure(instance)
    script = (
        "import os, sys; from mqctl.store import embedded\n"
        "embedded.ensure(embedded.locate(sys.argv[1], os.environ))\n"
        "print({'subprocess', 'platformdirs', 'redis'} & set(sys.modules))"
    )
    out = subprocess.run(
        [sys.executable, "-c", script, instance.url],
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.strip() == "set()"


def test_a_home_of_150_characters_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / ("h" * 150)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("MQCTL_DATA_DIR", raising=False)
    instance = embedded.locate("local", os.environ)
    assert home in instance.dir.parents
    try:
        embedded.ensure(instance)
        assert server_of(instance).answers
        assert stat.S_IMODE(instance.socket.parent.lstat().st_mode) == 0o700
    finally:
        embedded.stop(instance, 20)
    assert not instance.socket.exists()


# What it outlives


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGKILL]
)
def test_the_server_outlives_its_starter_and_its_terminal(
    instance: Instance, starters: list[Starter], number: signal.Signals
) -> None:
    starter = Starter(instance.url)
    starters.append(starter)
    starter.go()
    assert starter.line().startswith("started")
    assert starter.line() == "up"
    server_of(instance).call("SET", "k", "v")
    pid = embedded.status(instance).pid
    assert pid
    assert os.getsid(pid) == pid  # a session of its own: no terminal can end it
    starter.signal_all(number)
    assert server_of(instance).call("GET", "k") == b"v"


def test_the_server_keeps_no_pipe_of_its_starter_open(instance: Instance) -> None:
    script = (
        "import os, sys; from mqctl.store import embedded\n"
        "embedded.ensure(embedded.locate(sys.argv[1], os.environ))"
    )
    subprocess.run(  # ends when nobody holds the other ends of its pipes
        [sys.executable, "-c", script, instance.url],
        capture_output=True,
        check=True,
        timeout=30,
    )
    assert server_of(instance).answers


def test_a_server_that_ends_leaves_no_zombie_to_its_starter(instance: Instance) -> None:
    embedded.ensure(instance)
    pid = embedded.status(instance).pid
    assert pid
    kill_server(instance)  # waits until the process id is free again
    assert ended(pid)


def test_every_acknowledged_write_survives_a_kill(instance: Instance) -> None:
    embedded.ensure(instance)
    server = server_of(instance)
    acknowledged = []

    def write() -> None:
        with suppress(OSError):
            while True:
                acknowledged.append(server.call("XADD", "s", "*", "f", "x" * 100))

    writer = threading.Thread(target=write)
    writer.start()
    wait_until(lambda: len(acknowledged) >= 200, "writes")
    kill_server(instance)
    writer.join(20)
    embedded.ensure(instance)
    kept = {entry[0] for entry in server.call("XRANGE", "s", "-", "+")}
    assert set(acknowledged) <= kept


@pytest.mark.parametrize("fsync", ["always", "everysec", "no"])
def test_data_survives_an_orderly_end(
    instance: Instance, fsync: embedded.Fsync
) -> None:
    embedded.ensure(instance, fsync=fsync)
    assert embedded.status(instance).fsync == fsync
    server_of(instance).call("SET", "k", "v")
    assert embedded.stop(instance, 20)
    embedded.ensure(instance)
    assert server_of(instance).call("GET", "k") == b"v"


# Who can reach it


def test_only_its_user_can_reach_it(instance: Instance) -> None:
    old = os.umask(0)
    try:
        embedded.ensure(instance)
    finally:
        os.umask(old)
    assert stat.S_IMODE(instance.dir.stat().st_mode) == 0o700
    assert stat.S_IMODE(instance.socket.stat().st_mode) == 0o700
    assert not instance.pidfile.stat().st_mode & 0o022


def test_it_listens_on_its_socket_and_nowhere_else(instance: Instance) -> None:
    embedded.ensure(instance)
    info = server_of(instance).info()
    listeners = [info[name] for name in info if name.startswith("listener")]
    assert listeners == [f"name=unix,bind={instance.socket}"]
    assert info["tcp_port"] == "0"


def test_it_never_evicts_and_keeps_stream_nodes_large(instance: Instance) -> None:
    embedded.ensure(instance)
    server = server_of(instance)
    for name, value in {
        "maxmemory-policy": b"noeviction",
        "stream-node-max-bytes": b"16384",
        "appendonly": b"yes",
        "save": b"",
    }.items():
        assert server.call("CONFIG", "GET", name)[1] == value


# Why it cannot start


def explained(instance: Instance, program: str | None = None) -> BadConfig:
    env = {"PATH": os.environ["PATH"]}
    if program:
        env["MQCTL_SERVER_BIN"] = program
    with pytest.raises(BadConfig) as caught:
        embedded.ensure(instance, env=env, timeout=20)
    assert "\n" not in caught.value.message
    return caught.value


def test_a_program_that_ends_at_once_is_explained_by_its_last_words(
    instance: Instance, tmp_path: Path
) -> None:
    program = program_that(tmp_path / "p", then="echo no luck today >&2; exit 3")
    error = explained(instance, str(program))
    assert "exited with status 3" in error.message
    assert "no luck today" in error.message
    assert str(instance.log) in error.message
    assert embedded.status(instance).running is False


def test_only_the_last_start_is_told(instance: Instance, tmp_path: Path) -> None:
    embedded.ensure(instance)
    embedded.stop(instance, 20)
    error = explained(instance, str(program_that(tmp_path / "p", then="kill -9 $$")))
    assert "was killed by signal 9" in error.message
    assert error.facts["log_lines"] == []


def test_a_setting_the_program_does_not_know_is_told(
    instance: Instance, tmp_path: Path
) -> None:
    then = f'exec {real_program()} "$@" --no-such-setting 1'
    error = explained(instance, str(program_that(tmp_path / "p", then=then)))
    assert "no-such-setting" in error.message


def test_a_program_older_than_the_data_is_refused_before_it_starts_empty(
    instance: Instance, tmp_path: Path
) -> None:
    embedded.ensure(instance)
    embedded.stop(instance, 20)
    old = program_that(
        tmp_path / "p",
        version="Redis server v=6.2.14 sha=00000000:0",
        then=f'exec {real_program()} "$@"',
    )
    error = explained(instance, str(old))
    assert "6.2.14" in error.message
    assert str(instance.dir) in error.message


@pytest.mark.parametrize("size", [1_000, 12_000_000])
def test_a_corrupt_append_only_file_is_named(instance: Instance, size: int) -> None:
    embedded.ensure(instance, fsync="no")
    for i in range(0, size, 60_000):
        server_of(instance).call("SET", f"k{i}", "x" * 60_000)
    embedded.stop(instance, 20)
    increments = instance.dir.glob("appendonlydir/*.incr.aof")
    with max(increments).open("ab") as file:
        file.write(b"*1\r\n$7\r\nGARBAGE\r\nno such thing\r\n")
    for _ in range(2):  # the failure leaves no lock behind
        error = explained(instance)
        assert "ppend only file" in error.message
        assert str(instance.log) in error.message
        assert str(instance.dir) in str(error.facts["dir"])


def test_a_data_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in ("file", "file/below"):
        error = explained(embedded.locate(f"local:{tmp_path / place}", {}))
        assert place in error.message


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_named(instance: Instance) -> None:
    instance.dir.mkdir(mode=0o500)
    error = explained(instance)
    assert str(instance.dir) in error.message
    assert "Permission denied" in error.message


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", tmp_path],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk is not permitted here")
    try:
        (tmp_path / "server.lock").touch()
        with suppress(OSError), (tmp_path / "ballast").open("wb", 0) as ballast:
            while True:
                ballast.write(b"x" * 4096)
        error = explained(embedded.locate(f"local:{tmp_path}", {}))
        assert "the disk is full" in error.message
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_waiting_for_a_server_that_never_answers_ends(
    instance: Instance, gate: int, gated: str
) -> None:
    env = {"MQCTL_SERVER_BIN": gated}
    with pytest.raises(TimedOut, match="does not answer") as caught:
        embedded.ensure(instance, env=env, timeout=0.2)
    assert str(instance.log) in caught.value.message
    with pytest.raises(Unreachable, match="has not answered"):
        embedded.ensure(instance, env=env, timeout=0.2)
    with pytest.raises(TimedOut, match="has not ended"):
        embedded.stop(instance, 0.2)
    os.write(gate, b"\n")
    assert embedded.stop(instance, 20) is True


# Stopping and asking


def test_stop_ends_exactly_the_one_named(instance: Instance) -> None:
    other = embedded.locate(f"local:{instance.dir.parent / 'other'}", {})
    try:
        embedded.ensure(instance)
        embedded.ensure(other)
        assert embedded.stop(instance, 20) is True
        assert processes(instance) == 0
        assert not instance.socket.exists()
        assert server_of(other).answers
    finally:
        assert embedded.stop(other, 20) is True


def test_stopping_what_does_not_run_creates_nothing(instance: Instance) -> None:
    assert embedded.stop(instance, 5) is False
    assert not instance.dir.exists()


def test_stop_says_false_the_second_time(instance: Instance) -> None:
    embedded.ensure(instance)
    assert embedded.stop(instance, 20) is True
    assert embedded.stop(instance, 20) is False


def test_stop_reaches_a_server_whose_lock_file_is_gone(instance: Instance) -> None:
    embedded.ensure(instance)
    instance.lock.unlink()
    assert embedded.stop(instance, 20) is True
    wait_until(lambda: processes(instance) == 0, "the server's end")


def test_status_tells_what_runs(instance: Instance) -> None:
    embedded.ensure(instance, fsync="everysec")
    server = server_of(instance)
    for key in ("a", "b"):
        server.call("SET", key, "1")
    server.call("MOVE", "b", 1)
    told = embedded.status(instance)
    info = server.info()
    seconds = int(server.call("TIME")[0])
    assert told.running
    assert told.pid == int(info["process_id"])
    assert (told.dir, told.socket) == (str(instance.dir), str(instance.socket))
    assert told.url == instance.url
    assert told.version == info.get("valkey_version", info["redis_version"])
    assert told.fsync == "everysec"
    assert told.keys == 2
    assert told.memory_bytes
    assert told.started_at_ms
    assert told.uptime_ms is not None
    assert told.started_at_ms + told.uptime_ms == pytest.approx(
        seconds * 1000, abs=5000
    )
    assert told.started_at
    assert told.started_at.endswith("Z")


def test_status_of_what_does_not_run_has_its_places_only(instance: Instance) -> None:
    told = dataclasses.asdict(embedded.status(instance))
    assert " ".join(told) == (
        "running pid dir socket url version fsync keys memory_bytes uptime_ms "
        "started_at started_at_ms"
    )
    known = {name: value for name, value in told.items() if value is not None}
    assert known == {
        "running": False,
        "dir": str(instance.dir),
        "socket": str(instance.socket),
        "url": instance.url,
    }


def test_status_of_a_silent_server_is_unreachable(instance: Instance) -> None:
    embedded.ensure(instance)
    pid = embedded.status(instance).pid
    assert pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(Unreachable):
            embedded.status(instance)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert embedded.status(instance).running


def test_the_log_ends_with_its_last_lines(instance: Instance) -> None:
    assert embedded.log_tail(instance, 2) == []
    embedded.ensure(instance)
    embedded.stop(instance, 20)
    lines = embedded.log_tail(instance, 2)
    assert len(lines) == 2
    assert "bye" in lines[-1]
    assert embedded.log_tail(instance, 10_000)[-2:] == lines
    assert embedded.log_tail(instance, 0) == []


# The suite's own servers


def test_the_suites_server_is_empty_in_each_test(redis: Server) -> None:
    assert redis.call("DBSIZE") == 0
    redis.call("SET", "k", "v")
    assert redis.url == f"unix://{redis.socket}"


def test_the_suites_server_is_still_empty(redis: Server) -> None:
    assert redis.call("DBSIZE") == 0


@pytest.mark.cluster
def test_the_suites_cluster_serves_every_slot(cluster_redis: Server) -> None:
    for key in ("a", "b", "c", "{x}y"):
        assert cluster_redis.call("SET", key, "v") == b"OK"
    assert cluster_redis.url.startswith("redis://127.0.0.1:")
    assert cluster_redis.info()["cluster_enabled"] == "1"
