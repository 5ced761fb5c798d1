"""Between mqctl and a server: one command at a time, counted, cut where wanted."""

import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from threading import Lock, Thread
from types import TracebackType
from typing import Literal, Self

from tests.support.server import Server, _connect

Moment = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Cut:
    """Where the connection ends: at command `number`, counted from 1.

    "before": the command never reaches the server. "after": it is executed, its reply
    is lost.
    """

    number: int
    moment: Moment


def read_frame(file: BufferedReader) -> bytes:
    """Return the bytes of one command or reply; EOFError at the end."""
    line = file.readline()
    if not line.endswith(b"\r\n"):
        raise EOFError
    kind, count = line[:1], line[1:-2]
    if kind == b"$" and int(count) >= 0:
        body = file.read(int(count) + 2)
        if len(body) < int(count) + 2:
            raise EOFError
        return line + body
    if kind == b"*":
        return line + b"".join(read_frame(file) for _ in range(int(count)))
    return line


class Proxy:
    """A server's stand-in at a unix socket in `directory`.

    Each connection has one command under way at a time. `commands` are the names of
    all that came; `cut` ends the connection it hits, once, after calling `at_cut`.
    """

    def __init__(
        self,
        server: Server,
        directory: Path,
        cut: Cut | None = None,
        at_cut: Callable[[], None] = lambda: None,
    ) -> None:
        self.commands: list[str] = []
        self.was_cut = False
        self._server = server
        self._path = directory / "proxy"
        self._cut = cut
        self._at_cut = at_cut
        self._lock = Lock()
        self._open: set[socket.socket] = set()
        self._threads: list[Thread] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    @property
    def url(self) -> str:
        return f"unix://{self._path}"

    def __enter__(self) -> Self:
        self._path.unlink(missing_ok=True)
        self._listener.bind(str(self._path))
        self._listener.listen()
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for sock in self._open:
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    def _start(self, work: Callable[[], None]) -> None:
        thread = Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._start(lambda client=client: self._serve(client))  # type: ignore[misc]

    def _serve(self, client: socket.socket) -> None:
        with client, _connect(self._server) as upstream:
            upstream.settimeout(None)
            with self._lock:
                self._open |= {client, upstream}
            with suppress(OSError, EOFError, ValueError):
                self._relay(client, upstream)
            with self._lock:
                self._open -= {client, upstream}

    def _relay(self, client: socket.socket, upstream: socket.socket) -> None:
        with client.makefile("rb") as asked, upstream.makefile("rb") as answered:
            while True:
                command = read_frame(asked)
                hit = self._count(command)
                if hit == "before":
                    return
                upstream.sendall(command)
                reply = read_frame(answered)
                if hit == "after":
                    self._end()
                    return
                client.sendall(reply)

    def _count(self, command: bytes) -> Moment | None:
        with self._lock:
            self.commands.append(command.split(b"\r\n", 3)[2].decode())
            here = self._cut is not None and len(self.commands) == self._cut.number
        if not here or self._cut is None:
            return None
        if self._cut.moment == "before":
            self._end()
        return self._cut.moment

    def _end(self) -> None:
        self._at_cut()
        self.was_cut = True
