"""The embedded server: one per directory, started on demand, outliving its starter.

The truth about a server is its socket (does it answer) and its lock (does it live):
the server holds the lock as long as it runs. Nothing here signals a process.
"""

import fcntl
import os
import shlex
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from mqctl.core.clock import SystemClock, rfc3339
from mqctl.core.errors import BadConfig, MqError, TimedOut, Unreachable
from mqctl.store.instance import Instance, check_private, locate, prepare
from mqctl.store.url import Fsync
from mqctl.store.wire import Wire

__all__ = [
    "Fsync",
    "Instance",
    "ServerStatus",
    "Started",
    "ensure",
    "locate",
    "log_tail",
    "status",
    "stop",
]

_REPLY_SECONDS = 1.0
_START_SECONDS = 30.0
_PAUSE = 0.005


@dataclass(frozen=True, slots=True)
class Started:
    """A server that was started just now."""

    instance: Instance
    pid: int
    version: str


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """What `server status` tells; all but the first places None when not running."""

    running: bool
    pid: int | None
    dir: str
    socket: str
    url: str
    version: str | None
    fsync: str | None
    keys: int | None
    memory_bytes: int | None
    uptime_ms: int | None
    started_at: str | None
    started_at_ms: int | None


def ensure(
    instance: Instance,
    *,
    fsync: Fsync = "always",
    on_start: Callable[[Started], None] | None = None,
    env: Mapping[str, str] = os.environ,
    timeout: float = _START_SECONDS,
) -> None:
    """Return when a server answers; start one when none lives.

    However many call at once, one server runs and one of them calls `on_start`.
    `fsync` is for a server started here. The server found may be still loading.
    Raises BadConfig or Unsupported when none can be started, and TimedOut or
    Unreachable when one lives but does not answer within `timeout` seconds.
    """
    check_private(instance.socket.parent)
    if _greeting(instance):
        return
    prepare(instance)
    deadline = SystemClock().monotonic() + timeout
    with _lock_file(instance) as lock:
        while not _take(instance, lock):
            if _greeting(instance):
                return
            if SystemClock().monotonic() > deadline:
                raise _silent(instance, timeout)
            time.sleep(_PAUSE)
        if not _greeting(instance):
            started = _start(instance, fsync, env, lock, timeout)
            if on_start:
                on_start(started)


def _greeting(instance: Instance) -> bytes:
    """Return what the server says to a PING; empty when nobody answers.

    An error is an answer: a server that is loading, busy or locked is alive.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(_REPLY_SECONDS)
        try:
            sock.connect(str(instance.socket))
            sock.sendall(b"PING\r\n")
            return sock.recv(64)
        except OSError:
            return b""


@contextmanager
def _lock_file(instance: Instance) -> Iterator[int]:
    try:
        lock = os.open(instance.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unwritable(instance, error) from error
    try:
        yield lock
    finally:
        os.close(lock)  # not unlocked: a server that was started keeps the lock


def _take(instance: Instance, lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # a file system without locks
        raise _unwritable(instance, error) from error
    return True


def _start(
    instance: Instance,
    fsync: Fsync,
    env: Mapping[str, str],
    lock: int,
    timeout: float,
) -> Started:
    """Start the server while we hold the lock, and wait until its data is loaded."""
    from mqctl.store import launch

    program = launch.find_program(env)
    try:
        instance.socket.unlink(missing_ok=True)
        launched = launch.launch(program, instance, fsync, lock)
    except OSError as error:
        raise _unwritable(instance, error) from error
    deadline = SystemClock().monotonic() + timeout
    while not (greeting := _greeting(instance)) or greeting.startswith(b"-LOADING"):
        if launched.ended:
            raise launched.failure()
        if SystemClock().monotonic() > deadline:
            if greeting:
                break
            raise launched.too_slow(timeout)
        time.sleep(_PAUSE)
    return Started(instance, launched.pid, program.version)


def _unwritable(instance: Instance, error: OSError) -> BadConfig:
    return BadConfig(
        f"cannot start a server in {instance.dir}: {error.strerror}",
        file=str(error.filename or instance.dir),
    )


def _silent(instance: Instance, seconds: float) -> Unreachable:
    return Unreachable(
        f"the embedded server of {instance.dir} lives but has not answered on "
        f"{instance.socket} for {seconds:g} s (log: {instance.log})",
        hint=_who(instance),
        dir=str(instance.dir),
        log=str(instance.log),
    )


def _who(instance: Instance) -> str:
    return f"ps -p $(cat {shlex.quote(str(instance.pidfile))})"


def stop(instance: Instance, timeout: float) -> bool:
    """Ask the server to end, and wait until it has; False when none was running.

    Its data is on disk then. Raises TimedOut after `timeout` seconds: the server
    may still be ending.
    """
    deadline = SystemClock().monotonic() + timeout
    found = False
    while _lives(instance):
        found = True
        _ask_to_end(instance)
        if SystemClock().monotonic() > deadline:
            raise TimedOut(
                f"the embedded server of {instance.dir} has not ended in "
                f"{timeout:g} s (log: {instance.log})",
                hint=_who(instance),
                dir=str(instance.dir),
                log=str(instance.log),
            )
        time.sleep(_PAUSE)
    return found


def _lives(instance: Instance) -> bool:
    """Tell whether a server holds the lock, or answers although it does not."""
    try:
        lock = os.open(instance.lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return bool(_greeting(instance))
    try:
        return not _take(instance, lock) or bool(_greeting(instance))
    finally:
        os.close(lock)


def _ask_to_end(instance: Instance) -> None:
    wire = _dial(instance)
    if wire is None:
        return
    try:
        wire.batch([("SHUTDOWN",)])
    except Unreachable:
        pass  # how a server that obeys answers
    finally:
        wire.close()


def _dial(instance: Instance) -> Wire | None:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(_REPLY_SECONDS)
    try:
        sock.connect(str(instance.socket))
    except OSError:
        sock.close()
        return None
    return Wire(sock, instance.url, _REPLY_SECONDS)


def status(instance: Instance) -> ServerStatus:
    """Return what the server says of itself. Raises Unreachable when it is silent."""
    wire = _dial(instance)
    if wire is None:
        return _stopped(instance)
    try:
        info, policy, now = wire.calls(
            [("INFO",), ("CONFIG", "GET", "appendfsync"), ("TIME",)]
        )
    except MqError as error:
        if not _greeting(instance) and not _lives(instance):
            return _stopped(instance)  # it ended while we asked
        raise Unreachable(error.message) from error
    finally:
        wire.close()
    facts = _facts(info)
    uptime = int(facts["uptime_in_seconds"]) * 1000
    began = int(now[0]) * 1000 + int(now[1]) // 1000 - uptime
    return ServerStatus(
        running=True,
        pid=int(facts["process_id"]),
        dir=str(instance.dir),
        socket=str(instance.socket),
        url=instance.url,
        version=facts.get("valkey_version") or facts["redis_version"],
        fsync=policy[1].decode(),
        keys=_keys(facts),
        memory_bytes=int(facts["used_memory"]),
        uptime_ms=uptime,
        started_at=rfc3339(began),
        started_at_ms=began,
    )


def _stopped(instance: Instance) -> ServerStatus:
    return ServerStatus(
        running=False,
        pid=None,
        dir=str(instance.dir),
        socket=str(instance.socket),
        url=instance.url,
        version=None,
        fsync=None,
        keys=None,
        memory_bytes=None,
        uptime_ms=None,
        started_at=None,
        started_at_ms=None,
    )


def _facts(info: bytes) -> dict[str, str]:
    """Return the `name:value` lines of INFO."""
    lines = info.decode(errors="replace").splitlines()
    pairs = (line.partition(":") for line in lines)
    return {name: value for name, colon, value in pairs if colon}


def _keys(facts: Mapping[str, str]) -> int:
    """Return the number of keys in all databases: `db0:keys=3,expires=0,…`."""
    spaces = (v for k, v in facts.items() if k[:2] == "db" and k[2:].isdigit())
    return sum(int(v.partition("=")[2].partition(",")[0]) for v in spaces)


def log_tail(instance: Instance, lines: int) -> list[str]:
    """Return the last lines of the server's log; empty when there is none yet."""
    try:
        with instance.log.open(encoding="utf-8", errors="replace") as log:
            return [line.rstrip("\n") for line in deque(log, maxlen=lines)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BadConfig(
            f"cannot read {instance.log}: {error.strerror}", file=str(instance.log)
        ) from error
