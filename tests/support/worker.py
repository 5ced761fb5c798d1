"""The program itself as a child process: started, signalled, read, always ended."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any
from unittest.mock import patch

from hiredis import ReplyError

from mqctl.cli.main import run
from tests.support.server import Server
from tests.support.shell import environment
from tests.support.wait import wait_until

QUICK = (
    *("--lease-ttl", "1s", "--renew", "300ms", "--rebalance", "500ms"),
    *("--claim-idle", "1s", "--claim-interval", "500ms"),
)
"""Timings under which leases run out and entries become claimable in a second."""

CALM = ("--lease-ttl", "30s", "--claim-idle", "5m")
"""Timings under which nothing happens by itself: what moves was handed over."""


def argv(server: Server, command: str, *arguments: str) -> list[str]:
    words = [*command.split(), "-u", server.url, *arguments]
    return [sys.executable, "-m", "mqctl", *words]


def mqctl(
    server: Server,
    command: str,
    *arguments: str,
    input: bytes = b"",  # noqa: A002 - as subprocess names it
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end, in this process: no interpreter has to start."""
    words = argv(server, command, *arguments)[3:]
    with (
        TemporaryFile() as stdin,
        TemporaryFile() as stdout,
        TemporaryFile() as stderr,
        patch.dict(os.environ, environment(server.url), clear=True),
    ):
        stdin.write(input)
        stdin.seek(0)
        with _standing_in(stdin, stdout, stderr):
            code = run(words)
        streams = []
        for stream_ in (stdout, stderr):
            stream_.seek(0)
            streams.append(stream_.read())
    return subprocess.CompletedProcess(words, code, *streams)


@contextmanager
def _standing_in(*files: IO[bytes]) -> Iterator[None]:
    """Let files be the standard streams for a while."""
    saved = [os.dup(fd) for fd in range(3)]
    try:
        for fd, file in enumerate(files):
            os.dup2(file.fileno(), fd)
        with (
            open(1, "w", encoding="utf-8", closefd=False) as out,
            open(2, "w", encoding="utf-8", closefd=False) as err,
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            yield
    finally:
        for fd, kept in enumerate(saved):
            os.dup2(kept, fd)
            os.close(kept)


def produce(server: Server, topic: str, lines: Sequence[str], *options: str) -> None:
    """Store one message per line; the test fails when that fails."""
    text = "".join(f"{line}\n" for line in lines).encode()
    done = mqctl(server, "produce", topic, *options, input=text)
    assert done.returncode == 0, done.stderr.decode()


@dataclass
class Worker:
    """One running `mqctl` command; stdout and stderr go to files of their own.

    It leads a process group of its own, as a job of a shell does.
    """

    process: subprocess.Popen[bytes]
    out_path: Path
    err_path: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def out(self) -> bytes:
        return self.out_path.read_bytes()

    @property
    def lines(self) -> list[str]:
        """The complete lines it has written so far."""
        text = self.out
        return text[: text.rfind(b"\n") + 1].decode().splitlines()

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]

    @property
    def err(self) -> str:
        return self.err_path.read_text()

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it with SIGKILL and wait for that."""
        self.process.kill()
        self.process.wait()

    def wait(self, timeout: float = 20) -> int:
        """Return its exit code, below 0 for a signal."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running; stderr: {self.err}") from None

    def stop(self, number: int = signal.SIGTERM, timeout: float = 20) -> int:
        """Signal it and return its exit code."""
        self.send(number)
        return self.wait(timeout)


@dataclass
class Workers:
    """Starts commands on one server; `end` kills those that still run."""

    server: Server
    directory: Path
    started: list[Worker] = field(default_factory=list)

    def start(
        self,
        command: str,
        *arguments: str,
        stdin: Any = subprocess.DEVNULL,
        stdout: Any = None,
        env: dict[str, str] | None = None,
        prefix: Sequence[str] = (),
    ) -> Worker:
        """Start; stdout goes to a file unless a descriptor is given."""
        number = len(self.started)
        out_path = self.directory / f"{number}.out"
        err_path = self.directory / f"{number}.err"
        with out_path.open("wb") as out, err_path.open("wb") as err:
            process = subprocess.Popen(
                [*prefix, *argv(self.server, command, *arguments)],
                stdin=stdin,
                stdout=out if stdout is None else stdout,
                stderr=err,
                env=environment(self.server.url, **(env or {})),
                process_group=0,
            )
        worker = Worker(process, out_path, err_path)
        self.started.append(worker)
        return worker

    def consume(self, topic: str, *arguments: str, **more: Any) -> Worker:
        """Start a consumer of group g."""
        return self.start("consume", topic, "-g", "g", *arguments, **more)

    def end(self) -> None:
        for worker in self.started:
            if worker.running:
                worker.send(signal.SIGCONT)
                worker.kill()
            for pipe in (worker.process.stdin, worker.process.stdout):
                if pipe is not None:
                    pipe.close()


@contextmanager
def workers(server: Server) -> Iterator[Workers]:
    """Give a `Workers` whose processes and files are gone at the end."""
    with tempfile.TemporaryDirectory() as directory:
        started = Workers(server, Path(directory))
        try:
            yield started
        finally:
            started.end()


def script(path: Path, body: str) -> str:
    """Write an executable shell script and return its path."""
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


# -- what the server holds ----------------------------------------------------


def stream(topic: str, partition: int) -> str:
    return f"stream:topic:{topic}:p:{partition}"


def lease(topic: str, partition: int, group: str = "g") -> str:
    return f"streaming:mq:lease:{topic}:{group}:{partition}"


def owners(server: Server, topic: str, partitions: int) -> list[str | None]:
    """Return who holds each partition."""
    found = [server.call("GET", lease(topic, i)) for i in range(partitions)]
    return [None if name is None else name.decode() for name in found]


def pending(server: Server, topic: str, partitions: int) -> int:
    """Return how many entries of group g are delivered and not finished."""
    total = 0
    for i in range(partitions):
        with suppress(ReplyError):  # there is no such group yet
            total += server.call("XPENDING", stream(topic, i), "g")[0]
    return total


def members(server: Server) -> int:
    """Return how many consumers of group g give signs of life."""
    return int(server.call("ZCARD", "streaming:mq:members:g"))


def dead(server: Server, topic: str) -> list[dict[str, str]]:
    """Return the headers of the topic's dead letters, oldest first."""
    letters = []
    for _, flat in server.call("XRANGE", f"stream:topic:{topic}:dlq", "-", "+"):
        fields = dict(zip(flat[::2], flat[1::2], strict=True))
        letters.append(json.loads(fields[b"headers"]))
    return letters


def holds(server: Server, topic: str, partitions: int = 1) -> bool:
    """Tell whether every partition has an owner."""
    return None not in owners(server, topic, partitions)


def until_held(server: Server, topic: str, partitions: int = 1) -> None:
    wait_until(lambda: holds(server, topic, partitions), f"leases of {topic}")
