"""Commands as child processes: fed, listened to, limited in time, always reaped.

Each child leads a session of its own, so that the terminal's Ctrl-C does not reach
it and everything it started can be signalled together. A process group keeps its
number until its leader is reaped, so signals are sent before that and never after.
"""

import os
import select
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from math import ceil
from signal import SIGKILL, SIGPIPE, SIGTERM, SIGXFSZ
from threading import Lock

from mqctl.core.clock import Clock
from mqctl.core.errors import HandlerBroken

STDERR_KEPT = 8192

_STDIN, _STDERR = 0, 2
_CHUNK = 65536
_EOF_WAIT = 0.2  # seconds for stderr to end once the command has
_TICK = 0.01  # seconds between two looks where the system has no pidfd
_LONGEST_POLL = 3600.0


@dataclass(frozen=True, slots=True)
class Command:
    """What to start. `stdin` None is the null device; `program` is its path."""

    program: str
    argv: list[bytes]
    env: Mapping[bytes, bytes]
    stdin: bytes | None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: by status or by signal. `stderr` is its last 8 KB."""

    exit_code: int | None
    signal: int | None
    stderr: bytes
    timed_out: bool


class Processes:
    """The commands running now; `run` may be called from several threads."""

    def __init__(self, clock: Clock, grace: float) -> None:
        self._clock = clock
        self._grace = grace
        self._lock = Lock()
        self._running: set[_Child] = set()
        self._killed = False

    def run(self, command: Command, timeout: float | None) -> Ended:
        """Run the command to its end and pass its stderr on as it comes.

        After `timeout` seconds its group gets TERM, after the grace KILL. OSError
        when it cannot be started; HandlerBroken when its status cannot be known.
        """
        limit = None if timeout is None else self._clock.monotonic() + timeout
        with self._lock:
            child = _spawn(command, self._clock)
            self._running.add(child)
            if self._killed:
                child.signal(SIGKILL)
        try:
            timed_out = self._see_through(child, limit)
        finally:
            with self._lock:
                self._running.discard(child)
            child.end()
        return child.ended(timed_out=timed_out)

    def signal(self, number: int) -> None:
        """Signal every group that runs; after a KILL whatever still starts dies."""
        with self._lock:
            self._killed = self._killed or number == SIGKILL
            for child in self._running:
                child.signal(number)

    def _see_through(self, child: "_Child", limit: float | None) -> bool:
        timed_out = not child.attend(limit)
        if timed_out:
            last = self._clock.monotonic() + self._grace
            child.signal(SIGTERM)
            # What the command started may need the grace longer than itself.
            child.attend(last, to_eof=True)
            child.signal(SIGKILL)
            child.attend(None)
        child.attend(self._clock.monotonic() + _EOF_WAIT, to_eof=True)
        return timed_out


class _Child:
    """One process and our ends of its pipes; owned by one thread.

    Only `signal` may be called from another one.
    """

    def __init__(self, pid: int, stderr: int, clock: Clock) -> None:
        self._pid = pid
        self._clock = clock
        self._lock = Lock()
        self._reaped = False
        self._status = 0
        self._exited = False
        self._tail = b""
        self._stderr: int | None = stderr
        self._pidfd = _pidfd(pid)
        self._poll = select.poll()
        self._poll.register(stderr, select.POLLIN)
        if self._pidfd is not None:
            self._poll.register(self._pidfd, select.POLLIN)

    def attend(self, until: float | None, *, to_eof: bool = False) -> bool:
        """Serve the pipes until the process ends, with `to_eof` also its stderr.

        False when the monotonic clock reached `until` before; None is no limit.
        """
        while not self._exited or (to_eof and self._stderr is not None):
            left = _LONGEST_POLL if until is None else until - self._clock.monotonic()
            if left <= 0:
                return False
            tick = _TICK if self._pidfd is None else _LONGEST_POLL
            for fd, _ in self._poll.poll(ceil(min(left, tick) * 1000)):
                self._serve(fd)
            if self._pidfd is None:
                self._reap()
        return True

    def signal(self, number: int) -> None:
        """Signal the process and all it started, unless it is reaped."""
        with self._lock:
            if not self._reaped:
                with suppress(OSError):  # it became another user's
                    os.killpg(self._pid, number)

    def end(self) -> None:
        """Reap the process, by force when it was left in the middle."""
        if not self._exited:
            self.signal(SIGKILL)
            self.attend(None)
        try:
            self._reap()
        finally:
            for fd in (self._stderr, self._pidfd):
                if fd is not None:
                    os.close(fd)

    def ended(self, *, timed_out: bool) -> Ended:
        """Return what is known of a process that was reaped."""
        code = os.waitstatus_to_exitcode(self._status)
        return Ended(
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            stderr=self._tail,
            timed_out=timed_out,
        )

    def _serve(self, fd: int) -> None:
        if fd == self._stderr:
            self._listen(fd)
        else:
            self._exited = True
            self._poll.unregister(fd)

    def _listen(self, fd: int) -> None:
        chunk = os.read(fd, _CHUNK)
        if not chunk:
            self._stderr = None
            self._drop(fd)
            return
        self._tail = (self._tail + chunk)[-STDERR_KEPT:]
        _pass_on(chunk)

    def _drop(self, fd: int) -> None:
        self._poll.unregister(fd)
        os.close(fd)

    def _reap(self) -> None:
        with self._lock:
            if self._reaped:
                return
            try:
                pid, self._status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:
                self._reaped = self._exited = True
                raise HandlerBroken(
                    "the exit status of the command was lost",
                    hint="start mqctl where SIGCHLD is not ignored",
                ) from None
            self._reaped = pid != 0
            self._exited = self._exited or self._reaped


def _spawn(command: Command, clock: Clock) -> _Child:
    with ExitStack() as theirs, ExitStack() as ours:
        stderr, their_stderr = _pipe(ours, theirs)
        if command.stdin is None:
            their_stdin = os.open(os.devnull, os.O_RDONLY)
        else:
            their_stdin = _file_of(command.stdin)
        theirs.callback(os.close, their_stdin)
        pid = os.posix_spawn(
            command.program,
            command.argv,
            command.env,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, their_stdin, _STDIN),
                (os.POSIX_SPAWN_DUP2, their_stderr, _STDERR),
            ],
            setsid=True,
            # Python ignores these two and threads may block others: not for it.
            setsigdef=[SIGPIPE, SIGXFSZ],
            setsigmask=[],
        )
        ours.pop_all()
        return _Child(pid, stderr, clock)


def _file_of(payload: bytes) -> int:
    """Return a file in memory that holds the payload, at its start.

    Not a pipe: a command whose consumer is killed would read part of the payload, or
    none, and take it for the whole.
    """
    try:
        fd = os.memfd_create("mqctl-payload", os.MFD_CLOEXEC)
    except (AttributeError, OSError):  # not on this system
        from tempfile import TemporaryFile

        with TemporaryFile() as file:
            fd = os.dup(file.fileno())
    rest = memoryview(payload)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    read, write = os.pipe()
    reader.callback(os.close, read)
    writer.callback(os.close, write)
    return read, write


def _pidfd(pid: int) -> int | None:
    """Return a descriptor that becomes readable when the process ends.

    None where the system has none: then the end is looked for in ticks, and what
    outlives a reaped leader is not signalled any more.
    """
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _pass_on(chunk: bytes) -> None:
    """Write to our own stderr; one that is gone is no reason to stop the work."""
    rest = memoryview(chunk)
    with suppress(OSError):
        while rest:
            try:
                rest = rest[os.write(_STDERR, rest) :]
            except BlockingIOError:
                select.select([], [_STDERR], [])
