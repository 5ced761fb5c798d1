"""One pipelined connection: commands packed by hand, replies parsed by hiredis.

Nothing is ever sent twice. Every command sent has exactly one reply, handed out
in order; a server error is a reply. After a failure of the connection the wire is
closed and says how many replies are still owed: those commands have an unknown
outcome.
"""

import socket
from collections.abc import Iterable, Sequence
from typing import Any, cast

import hiredis

from mqctl.core.errors import (
    AuthFailed,
    ClusterDown,
    Denied,
    Loading,
    MqError,
    NotFound,
    OutOfMemory,
    ReadOnly,
    Unreachable,
    WrongType,
)

Arg = bytes | str | int
Command = Sequence[Arg]
Reply = Any
"""bytes, int, None, list of replies, or ServerError."""

_RECV = 1 << 18

_KINDS: dict[str, type[MqError]] = {
    "NOAUTH": AuthFailed,
    "WRONGPASS": AuthFailed,
    "NOPERM": Denied,
    "READONLY": ReadOnly,
    "LOADING": Loading,
    "MASTERDOWN": Loading,
    "OOM": OutOfMemory,
    "WRONGTYPE": WrongType,
    "NOGROUP": NotFound,
    "CLUSTERDOWN": ClusterDown,
    "MOVED": ClusterDown,
    "ASK": ClusterDown,
    "TRYAGAIN": ClusterDown,
}


class ServerError(Exception):
    """An error reply. `kind` is its first word."""

    @property
    def text(self) -> str:
        """Return the server's own line."""
        return str(self.args[0]) if self.args else ""

    @property
    def kind(self) -> str:
        """Return the word that names the kind of error."""
        return self.text.split(" ", 1)[0]

    def explained(self, doing: str) -> MqError:
        """Return the error of ours that says the same."""
        kind = self.kind
        if kind == "ERR" and "invalid password" in self.text:
            kind = "WRONGPASS"
        if kind not in _KINDS and "OOM command not allowed" in self.text:
            kind = "OOM"
        return _KINDS.get(kind, MqError)(f"{doing}: the server says: {self.text}")


class ConnectionLost(Unreachable):
    """The connection broke or the server fell silent; `owed` replies are lost."""

    def __init__(self, message: str, owed: int) -> None:
        super().__init__(message)
        self.owed = owed


def pack(args: Command) -> bytes:
    """Return one command in the wire's form."""
    try:
        return cast("bytes", hiredis.pack_command(cast("Any", tuple(args))))
    except UnicodeEncodeError:  # names of others that are not UTF-8
        raw = tuple(
            arg.encode("utf-8", "surrogateescape") if isinstance(arg, str) else arg
            for arg in args
        )
        return cast("bytes", hiredis.pack_command(cast("Any", raw)))


class Wire:
    """A connection that owes replies in order. Not for use by two threads at once.

    `timeout` is the longest silence in seconds while a reply is awaited.
    """

    def __init__(self, sock: socket.socket, address: str, timeout: float) -> None:
        self._sock = sock
        self._reader = hiredis.Reader(replyError=ServerError)
        self._timeout = timeout
        self.address = address
        self.owed = 0
        self.cluster = False
        self.sources: dict[str, str] = {}
        sock.settimeout(timeout)

    def fileno(self) -> int:
        """Return the socket's descriptor, for select."""
        return self._sock.fileno()

    def send(self, data: bytes, replies: int) -> None:
        """Send packed commands that will have that many replies."""
        self.owed += replies
        try:
            self._sock.sendall(data)
        except (OSError, ValueError) as error:
            raise self._lost(error) from error

    def receive(self, *, wait: float | None = None) -> Reply:
        """Return the next reply; `wait` overrides the longest silence in seconds."""
        reply = self._reader.gets()
        if reply is False:
            if wait is not None:
                self._sock.settimeout(wait)
            try:
                reply = self._read()
            finally:
                if wait is not None and self._sock.fileno() >= 0:
                    self._sock.settimeout(self._timeout)
        self.owed -= 1
        return reply

    def receive_into(self, replies: list[Reply], count: int) -> None:
        """Append the next `count` replies; those read before a failure are kept."""
        gets, append = self._reader.gets, replies.append
        for _ in range(count):
            reply = gets()
            append(self._read() if reply is False else reply)
            self.owed -= 1

    def _read(self) -> Reply:
        while True:
            try:
                data = self._sock.recv(_RECV)
            except (OSError, ValueError) as error:
                raise self._lost(error) from error
            if not data:
                raise self._lost(None)
            try:
                self._reader.feed(data)
                reply = self._reader.gets()
            except hiredis.HiredisError as error:
                raise self._lost(error) from error
            if reply is not False:
                return reply

    def _lost(self, error: BaseException | None) -> ConnectionLost:
        self.close()
        if isinstance(error, TimeoutError):
            what = f"no answer within {self._timeout:g} s"
        else:
            what = "connection closed" if error is None else str(error)
        return ConnectionLost(f"lost the server at {self.address}: {what}", self.owed)

    def abort(self) -> None:
        """End whatever waits for a reply; callable from another thread."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:  # closed already
            return

    def close(self) -> None:
        """Close the connection; owed replies are lost."""
        self._sock.close()

    @property
    def closed(self) -> bool:
        """Tell whether the connection is gone."""
        return self._sock.fileno() < 0

    def batch(self, commands: Iterable[Command]) -> list[Reply]:
        """Send all commands, return all replies, error replies as values.

        A script the server has forgotten is sent again as source: a NOSCRIPT
        reply says that nothing was done.
        """
        listed = list(commands)
        if not listed:
            return []
        self.send(b"".join(map(pack, listed)), len(listed))
        replies = [self.receive() for _ in listed]
        for i, reply in enumerate(replies):
            if isinstance(reply, ServerError) and reply.kind == "NOSCRIPT":
                replies[i] = self._with_source(listed[i])
        return replies

    def _with_source(self, command: Command) -> Reply:
        source = self.sources[str(command[1])]
        self.send(pack(("EVAL", source, *command[2:])), 1)
        return self.receive()

    def call(self, *args: Arg) -> Reply:
        """Run one command; an error reply is raised as an MqError."""
        reply = self.batch([args])[0]
        if isinstance(reply, ServerError):
            raise reply.explained(str(args[0]))
        return reply

    def calls(self, commands: Iterable[Command]) -> list[Reply]:
        """Run all commands in one trip; the first error reply is raised."""
        listed = list(commands)
        replies = self.batch(listed)
        for command, reply in zip(listed, replies, strict=True):
            if isinstance(reply, ServerError):
                raise reply.explained(str(command[0]))
        return replies
