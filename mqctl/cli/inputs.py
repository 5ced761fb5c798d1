"""Standard input and files, cut at a delimiter, in constant memory."""

import fcntl
import os
import select
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING

from mqctl.core.errors import BadUsage, NoInput, TooLarge

if TYPE_CHECKING:
    from mqctl.cli.signals import Interruptible

_CHUNK = 1 << 18


class Records:
    """Delimited records of a descriptor, in blocks of whole records.

    Iterating gives lists of records as they arrive; an empty list means that nothing
    more is there at the moment, so what was read should be sent. A last record needs
    no delimiter.
    """

    def __init__(
        self,
        fd: int,
        delimiter: bytes,
        max_bytes: int,
        interrupt: "Interruptible | None" = None,
    ) -> None:
        self._waiting = nullcontext if interrupt is None else interrupt.waiting
        self._fd = fd
        self._delimiter = delimiter
        self._max = max_bytes
        self.line = 0

    def __iter__(self) -> Iterator[list[bytes]]:
        pieces: list[bytes] = []
        held = 0
        tail = len(self._delimiter) - 1
        while True:
            if not self._ready():
                yield []
            chunk = self._read()
            if not chunk:
                break
            if tail and pieces:  # a delimiter may lie across two chunks
                chunk = pieces.pop() + chunk
                held = sum(map(len, pieces))
            records = chunk.split(self._delimiter)
            if len(records) > 1:
                records[0] = b"".join((*pieces, records[0]))
                pieces = []
                held = 0
                rest = records.pop()
                self.line += len(records)
                yield records
                chunk = rest
            if chunk:
                pieces.append(chunk)
                held += len(chunk)
            if held > self._max:
                raise TooLarge(
                    f"line {self.line + 1} has more than {self._max} bytes",
                    hint="--max-bytes raises the limit",
                    line=self.line + 1,
                )
        if pieces:
            self.line += 1
            yield [b"".join(pieces)]

    def _ready(self) -> bool:
        try:
            return bool(select.select([self._fd], [], [], 0)[0])
        except (OSError, ValueError):
            return True

    def _read(self) -> bytes:
        try:
            with self._waiting():
                return os.read(self._fd, _CHUNK)
        except OSError as error:
            raise NoInput(f"cannot read the input: {error.strerror}") from error


def whole(fd: int, max_bytes: int, interrupt: "Interruptible | None" = None) -> bytes:
    """Return everything a descriptor has; TooLarge above `max_bytes`."""
    pieces: list[bytes] = []
    held = 0
    waiting = nullcontext if interrupt is None else interrupt.waiting
    while True:
        try:
            with waiting():
                chunk = os.read(fd, _CHUNK)
        except OSError as error:
            raise NoInput(f"cannot read the input: {error.strerror}") from error
        if not chunk:
            return b"".join(pieces)
        pieces.append(chunk)
        held += len(chunk)
        if held > max_bytes:
            raise TooLarge(
                f"the input has more than {max_bytes} bytes",
                hint="--max-bytes raises the limit",
            )


def standard() -> int:
    """Return the descriptor of standard input; BadUsage when it is closed."""
    if fcntl.fcntl(0, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
        raise BadUsage(
            "standard input is closed", hint="give messages as arguments, or a pipe"
        )
    return 0


def check_file(path: str) -> None:
    """Raise NoInput, before anything is done, for a file that cannot be read."""
    try:
        readable = os.access(path, os.R_OK)
    except ValueError:  # a NUL in it
        readable = False
    if not readable:
        os.close(open_file(path))


def open_file(path: str) -> int:
    """Return a descriptor of a file to read; NoInput when it cannot be opened."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise NoInput(f"cannot open {path}: {error.strerror}", file=path) from error
    except ValueError as error:
        raise NoInput(f"cannot open {path!a}: {error}", file=path) from error
