"""Standard output as bytes: written whole, or said why not."""

import os
import select
import stat
from collections.abc import Callable

from mqctl.core.errors import OutputFailed

_PIPE_SURE = 4096  # bytes a pipe that select calls writable takes without blocking
_ALIVE_EVERY = 1.0


class Output:
    """A descriptor data goes to.

    Raises BrokenPipeError when the reader is gone, and OutputFailed when the bytes
    cannot be stored.
    """

    def __init__(self, fd: int = 1) -> None:
        self.fd = fd
        try:
            kind = os.fstat(fd).st_mode
        except OSError:
            kind = 0
        self.isatty = stat.S_ISCHR(kind) and os.isatty(fd)
        self._waits = stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or self.isatty

    def text(self, text: str) -> None:
        """Write text and a newline, as UTF-8."""
        self.write(f"{text}\n".encode("utf-8", "surrogateescape"))

    def write(self, data: bytes) -> None:
        """Write all of it, blocking as long as the reader does not read."""
        self.write_alive(data, None)

    def write_alive(self, data: bytes, alive: Callable[[], None] | None) -> None:
        """Write all of it; call `alive` every second while the reader is slow."""
        view = memoryview(data)
        while view:
            if self._waits and alive is not None:
                self._wait(alive)
                written = self._once(view[:_PIPE_SURE])
            else:
                written = self._once(view)
            view = view[written:]

    def _wait(self, alive: Callable[[], None]) -> None:
        while not select.select([], [self.fd], [], _ALIVE_EVERY)[1]:
            alive()

    def _once(self, view: memoryview) -> int:
        try:
            return os.write(self.fd, view)
        except BlockingIOError:
            select.select([], [self.fd], [], _ALIVE_EVERY)
            return 0
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputFailed(
                f"cannot write to standard output: {error.strerror}"
            ) from error
