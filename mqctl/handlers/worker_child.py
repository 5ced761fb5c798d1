"""A long-lived child process and our ends of its three pipes.

It leads a session of its own, so that the terminal's Ctrl-C does not reach it and all
it started can be signalled together. No pipe end of ours ever blocks.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from fcntl import ioctl
from select import POLLIN, poll
from signal import SIGKILL, SIGPIPE, SIGXFSZ
from termios import FIONREAD
from threading import RLock

from mqctl.handlers.process import STDERR_KEPT, _pass_on, _pidfd, _pipe
from mqctl.handlers.worker_answers import Nonsense

LONGEST_LINE = 65536  # bytes of an answer

_CHUNK = 65536
_MOST_CHUNKS = 64  # at a time, so that a flood does not keep others waiting
_STDIN, _STDOUT, _STDERR = 0, 1, 2


class Poller:
    """File descriptors and what to call when one is ready."""

    def __init__(self) -> None:
        self._poll = poll()
        self._calls: dict[int, Callable[[], None]] = {}

    def watch(self, fd: int, call: Callable[[], None], events: int = POLLIN) -> None:
        """Call this whenever the descriptor is ready."""
        self._poll.register(fd, events)
        self._calls[fd] = call

    def forget(self, fd: int) -> None:
        """Watch it no more, if it was watched; before it is closed."""
        if self._calls.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def wait(self, milliseconds: int) -> None:
        """Wait that long for something to happen, and call."""
        for fd, _ in self._poll.poll(milliseconds):
            call = self._calls.get(fd)
            if call is not None:
                call()


class Child:
    """Owned by one thread; only `signal` may be called from others.

    `pidfd` becomes readable when the process ends; None where the system has none:
    then what outlives the process cannot be signalled any more. `tail` is the last
    8 KB of stderr.
    """

    def __init__(self, pid: int, stdin: int, stdout: int, stderr: int) -> None:
        self._pid = pid
        self._lock = RLock()  # a signal handler may come in between
        self._reaped = False
        self._status: int | None = None
        self._heard = b""
        self._stdin_closed = False
        self.tail = b""
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.pidfd = _pidfd(pid)
        for fd in (stdin, stdout, stderr):
            os.set_blocking(fd, False)

    def signal(self, number: int) -> None:
        """Signal the process and all it started, unless it is reaped."""
        with self._lock:
            if not self._reaped:
                with suppress(OSError):  # it became another user's
                    os.killpg(self._pid, number)

    def write(self, lines: Sequence[bytes | memoryview]) -> int | None:
        """Write what the pipe takes; return its length, None when nobody reads it."""
        try:
            return os.writev(self.stdin, lines)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            return None

    def unread(self) -> int:
        """Return how many bytes it has left in its stdin; 0 where nobody knows."""
        if self._stdin_closed:
            return 0
        try:
            found = ioctl(self.stdin, FIONREAD, bytes(4))
        except OSError:
            return 0
        return int.from_bytes(found, sys.byteorder)

    def shut(self) -> None:
        """Close its stdin: no more will come."""
        os.close(self.stdin)
        self._stdin_closed = True

    def lines(self) -> list[bytes] | None:
        """Return what came on stdout as lines without their ends; None at its end.

        Raises Nonsense when a line gets too long.
        """
        heard, more = _read(self.stdout)
        *lines, self._heard = (self._heard + heard).split(b"\n")
        if len(self._heard) > LONGEST_LINE:
            self._heard = b""
            raise Nonsense(f"a line of more than {LONGEST_LINE} bytes")
        return lines if lines or more else None

    def listen(self) -> bool:
        """Pass on what came on stderr and keep its tail; False at its end."""
        heard, more = _read(self.stderr)
        self.tail = (self.tail + heard)[-STDERR_KEPT:]
        _pass_on(heard)
        return more or heard != b""

    def gone(self) -> bool:
        """Tell whether the process has ended, without a pidfd; it is reaped then."""
        return self._reap(os.WNOHANG)

    def end(self) -> int | None:
        """Kill what is left of the group, reap, close; return the exit code.

        Waits for the process unless it has ended. A negative exit code is minus the
        signal. None: it went to somebody else.
        """
        self.signal(SIGKILL)
        self._reap(0)
        if not self._stdin_closed:
            os.close(self.stdin)
        os.close(self.stdout)
        os.close(self.stderr)
        if self.pidfd is not None:
            os.close(self.pidfd)
        status = self._status
        return None if status is None else os.waitstatus_to_exitcode(status)

    def _reap(self, flags: int) -> bool:
        with self._lock:
            if not self._reaped:
                try:
                    pid, status = os.waitpid(self._pid, flags)
                except ChildProcessError:
                    self._reaped = True
                else:
                    self._reaped = pid != 0
                    self._status = status if pid else None
            return self._reaped


def start_child(
    program: str, argv: tuple[bytes, ...], env: Mapping[bytes, bytes]
) -> Child:
    """Start the program with pipes for all three streams. OSError when it cannot."""
    with ExitStack() as theirs, ExitStack() as ours:
        their_stdin, stdin = _pipe(theirs, ours)
        stdout, their_stdout = _pipe(ours, theirs)
        stderr, their_stderr = _pipe(ours, theirs)
        pid = os.posix_spawn(
            program,
            argv,
            env,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, their_stdin, _STDIN),
                (os.POSIX_SPAWN_DUP2, their_stdout, _STDOUT),
                (os.POSIX_SPAWN_DUP2, their_stderr, _STDERR),
            ],
            setsid=True,
            # Python ignores these two and threads may block others: not for it.
            setsigdef=[SIGPIPE, SIGXFSZ],
            setsigmask=[],
        )
        ours.pop_all()
        return Child(pid, stdin, stdout, stderr)


def _read(fd: int) -> tuple[bytes, bool]:
    """Return what is there, and whether more may come."""
    chunks: list[bytes] = []
    for _ in range(_MOST_CHUNKS):
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            break
        if not chunk:
            return b"".join(chunks), False
        chunks.append(chunk)
        if len(chunk) < _CHUNK:  # the pipe is empty
            break
    return b"".join(chunks), True
