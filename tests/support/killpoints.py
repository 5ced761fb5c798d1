"""Programs killed at a command of one's choice, and the account of what is left."""

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Any, Self

from mqctl.codecs import dead_letter, native
from mqctl.core.handler import SUCCESS, Result
from mqctl.core.message import Delivery
from mqctl.core.options import ConsumerOptions
from mqctl.engine import payloads, retries
from mqctl.engine.consumer import Consumer
from mqctl.engine.session import Session
from mqctl.store.url import parse_url
from tests.support.proxy import Cut, Moment, Proxy
from tests.support.server import Server

GROUP = "g"
TURNS: tuple[tuple[str, Moment], ...] = (
    ("SET", "after"),
    ("XADD", "before"),
    ("XADD", "after"),
    ("XACK", "after"),
    ("EVALSHA", "before"),
    ("EVALSHA", "after"),
)
_ROOT = Path(__file__).parents[2]
_SUBREAPER = 36  # prctl: orphans below become children


class Launcher:
    """Starts mqctl as a process of its own within milliseconds, one at a time.

    A Python process that has imported mqctl forks once for each run.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.killpoints"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_ROOT,
        )
        self._pid: int | None = None
        self._started = Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pid is not None:
            self.kill()
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=20)

    def start(self, arguments: list[str], url: str, *streams: Path) -> None:
        """Start `mqctl ARGUMENTS`; three files are its standard streams."""
        files = [str(path) for path in streams]
        self._say({"argv": arguments, "url": url, "files": files})
        self._pid = self._hear()
        self._started.set()

    def kill(self) -> None:
        """End the running process at once; safe from any thread."""
        assert self._started.wait(10)
        assert self._pid is not None
        os.kill(self._pid, signal.SIGKILL)

    def wait(self) -> int:
        """Return the exit code, or the negative number of the signal."""
        status = self._hear()
        self._started.clear()
        self._pid = None
        return status

    def _say(self, order: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()

    def _hear(self) -> int:
        assert self._process.stdout
        return int(self._process.stdout.readline())


def _zygote() -> None:
    import mqctl.cli.ack
    import mqctl.cli.consume
    import mqctl.cli.dlq
    import mqctl.cli.produce  # noqa: F401
    from mqctl.cli.main import main

    ctypes.CDLL(None).prctl(_SUBREAPER, 1)
    while line := os.read(0, 1 << 16):
        order = json.loads(line)
        pid = os.fork()
        if not pid:
            modes = [os.O_RDONLY, *[os.O_WRONLY | os.O_CREAT | os.O_APPEND] * 2]
            for fd, (path, mode) in enumerate(zip(order["files"], modes, strict=True)):
                opened = os.open(path, mode, 0o600)
                os.dup2(opened, fd)
                os.close(opened)
            os.environ["MQCTL_URL"] = order["url"]
            main(order["argv"])
        os.write(1, b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        with suppress(ChildProcessError):  # handlers of a killed program write on
            while True:
                os.wait()
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(status))


@dataclass(frozen=True)
class World:
    """A topic on a server. `atomic`: its keys share a slot, scripts are used."""

    server: Server
    topic: str
    atomic: bool
    directory: Path
    session: Session

    @classmethod
    def open(cls, server: Server, topic: str, *, atomic: bool, directory: Path) -> Self:
        session = Session.open(parse_url(server.url, tls=None))
        return cls(server, topic, atomic, directory, session)

    @property
    def log(self) -> Path:
        """Where the program under test notes what it has handled, line by line."""
        return self.directory / "log"

    @property
    def out(self) -> Path:
        return self.directory / "out"

    def stream(self, partition: int = 0) -> str:
        return self.session.keys.partition(self.topic, partition)

    def partitions(self) -> int:
        meta = self.session.keys.meta(self.topic)
        return int(self.server.call("HGET", meta, "partitionCount") or 0)


@dataclass
class Ledger:
    """Where every message is, by payload: how many copies wait, how many are dead.

    `whole`: the program ended by itself.
    """

    waiting: Counter[bytes] = field(default_factory=Counter)
    delayed: Counter[bytes] = field(default_factory=Counter)
    dead: Counter[bytes] = field(default_factory=Counter)
    stored: Counter[bytes] = field(default_factory=Counter)
    whole: bool = False

    @property
    def live(self) -> Counter[bytes]:
        """Copies that somebody still has to look at, dead ones included."""
        return self.waiting + self.delayed + self.dead


def ledger(world: World, group: str = GROUP) -> Ledger:
    """Read it from the server; what waits is what this group has yet to finish."""
    found = Ledger()
    for index in range(world.partitions()):
        for payload, open_ in _entries(world, index, group):
            found.stored[payload] += 1
            if open_:
                found.waiting[payload] += 1
    for item in retries.listed(world.session, world.topic):
        found.delayed[item.payload] += 1
    letters = world.server.call("XRANGE", world.session.keys.dlq(world.topic), "-", "+")
    for entry_id, flat in letters:
        letter = dead_letter.decode(world.topic, entry_id.decode(), flat)
        found.dead[letter.message.payload] += 1
    return found


def _entries(world: World, index: int, group: str) -> list[tuple[bytes, bool]]:
    """Return payload of each entry, and whether the group has yet to finish it."""
    stream = world.stream(index)
    groups = (
        world.server.call("XINFO", "GROUPS", stream)
        if world.server.call("EXISTS", stream)
        else []
    )
    last, pending = (0, 0), set()
    for row in groups:
        info = dict(zip(row[::2], row[1::2], strict=True))
        if info[b"name"] != group.encode():
            continue
        last = _id(info[b"last-delivered-id"])
        rows = world.server.call("XPENDING", stream, group, "-", "+", 100_000)
        pending = {row[0] for row in rows}
    found = []
    for raw_id, flat in world.server.call("XRANGE", stream, "-", "+"):
        message = native.decode(world.topic, index, raw_id.decode(), flat)
        (loaded,) = payloads.load(world.session, [message])
        assert loaded is not None, "an entry without its body"
        found.append((loaded.payload, _id(raw_id) > last or raw_id in pending))
    return found


def _id(raw: bytes) -> tuple[int, int]:
    ms, seq = raw.decode().split("-")
    return int(ms), int(seq)


@dataclass
class Recorder:
    """A handler that remembers, and succeeds unless `answer` says otherwise.

    `tries` are payload and attempt of each call.
    """

    answer: Callable[[bytes, int], Result] = lambda _, __: SUCCESS
    tries: list[tuple[bytes, int]] = field(default_factory=list)
    handled: Counter[bytes] = field(default_factory=Counter)

    def __call__(self, delivery: Delivery) -> Result:
        payload = delivery.message.payload
        self.tries.append((payload, delivery.attempt))
        result = self.answer(payload, delivery.attempt)
        self.handled[payload] += result is SUCCESS
        return result

    def drain(self) -> None:
        return

    def kill(self) -> None:
        return


def recover(
    world: World,
    recorder: Recorder | None = None,
    *,
    group: str = GROUP,
    **options: Any,
) -> Counter[bytes]:
    """Let time pass and a second consumer do what is left; return what it handled.

    Time: leases and signs of life run out, everything delayed comes due.
    """
    keys, call = world.session.keys, world.server.call
    leases = [keys.lease(world.topic, group, i) for i in range(world.partitions())]
    for gone in (*leases, keys.members(group)):
        call("DEL", gone)
    waiting = keys.retries(world.topic)
    for item in call("ZRANGE", waiting, 0, -1):
        call("ZADD", waiting, 1, item)
    quick = {"claim_idle_ms": 1, "claim_interval_ms": 10, "mover_interval_ms": 10}
    settings = ConsumerOptions(
        (world.topic,), group, exit_when_empty=True, **(quick | options)
    )
    recorder = recorder or Recorder()
    Consumer(world.session, settings, handler=recorder).run()
    return recorder.handled


@dataclass(frozen=True)
class Scenario:
    """A program and what stands on the server before it runs.

    `prepare` may return what the program gets on standard input. With `again` the
    program runs a second time before the check, the whole of it. `turns` are the
    commands at which to cut by default.
    """

    name: str
    arguments: Callable[[World], list[str]]
    prepare: Callable[[World], bytes]
    check: Callable[[World, Ledger], None]
    turns: tuple[tuple[str, Moment], ...] = TURNS
    again: bool = False


@dataclass(frozen=True)
class Run:
    """One run: the commands seen, and whether it was killed."""

    commands: list[str]
    killed: bool


def run(world: World, launcher: Launcher, scenario: Scenario, cut: Cut | None) -> Run:
    """Prepare, run the program up to the cut, check. Fails when anything is wrong."""
    world.server.call("FLUSHALL")
    for path in (world.log, world.out):
        path.write_bytes(b"")
    given, errors = world.directory / "in", world.directory / "err"
    given.write_bytes(scenario.prepare(world))
    errors.write_bytes(b"")
    with Proxy(world.server, world.directory, cut, launcher.kill) as proxy:
        arguments = scenario.arguments(world)
        launcher.start(arguments, proxy.url, given, world.out, errors)
        status = launcher.wait()
    told = errors.read_text()
    assert status == (-signal.SIGKILL if proxy.was_cut else 0), (status, told)
    left = ledger(world)
    left.whole = not proxy.was_cut
    if scenario.again:
        launcher.start(arguments, world.server.url, given, world.out, errors)
        assert launcher.wait() == 0, errors.read_text()
    scenario.check(world, left)
    return Run(proxy.commands, proxy.was_cut)


if __name__ == "__main__":
    _zygote()
