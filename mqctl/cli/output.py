"""Standard output as bytes: written whole, or said why not."""

import os
import select
import stat
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from mqctl.core.errors import OutputFailed

_PIPE_SURE = 4096  # bytes a pipe that select calls writable takes without blocking
_SHORT = 0.1  # seconds between two looks once no more records are to be begun


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
        view = memoryview(data)
        while view:
            view = view[self._once(view) :]

    def write_records(
        self, records: Sequence[bytes], alive: Callable[[], float]
    ) -> int:
        """Write whole records, from the first on; return how many are out.

        Calls `alive` before each piece and again whenever as many seconds as it
        returned have passed; after a 0 only the record begun is finished.
        """
        ends = list(accumulate(map(len, records)))
        data, at = memoryview(b"".join(records)), 0
        stop = len(data)
        piece = _PIPE_SURE if self._waits else stop
        while at < stop:
            pause = alive()
            if not pause:
                stop = min(stop, ends[bisect_left(ends, max(at, 1))])
            if not self._waits or select.select([], [self.fd], [], pause or _SHORT)[1]:
                at += self._once(data[at : min(stop, at + piece)])
        return bisect_right(ends, stop)

    def _once(self, view: memoryview) -> int:
        try:
            return os.write(self.fd, view)
        except BlockingIOError:
            select.select([], [self.fd], [], _SHORT)
            return 0
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputFailed(
                f"cannot write to standard output: {error.strerror}"
            ) from error
