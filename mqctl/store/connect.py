"""Endpoint to wire: sockets, TLS, passwords, and waiting for a loading server."""

import socket
import time
from collections.abc import Callable

from mqctl.core.clock import SystemClock
from mqctl.core.errors import (
    AuthFailed,
    BadConfig,
    Denied,
    Loading,
    MqError,
    Unreachable,
)
from mqctl.store.url import Endpoint, Fsync, Tls
from mqctl.store.wire import ServerError, Wire

CONNECT_TIMEOUT = 5.0
REPLY_TIMEOUT = 30.0
_LOADING_PAUSE = 0.05


def open_wire(
    endpoint: Endpoint,
    clock: SystemClock,
    *,
    started: Callable[[str], None] | None = None,
    timeout: float = CONNECT_TIMEOUT,
) -> Wire:
    """Connect, log in, select the database; two round trips, one for `local`.

    A `local` endpoint starts its server when none runs and then calls `started`
    with a line for people. Raises Unreachable, Loading (still loading after
    `timeout` seconds), AuthFailed, Denied or BadConfig.
    """
    address = endpoint.shown
    if endpoint.local is not None:
        sock = _local(endpoint.local, endpoint.fsync, started)
        wire = Wire(sock, address, REPLY_TIMEOUT)
    else:
        sock = _connect(endpoint, timeout)
        wire = Wire(sock, address, REPLY_TIMEOUT)
    deadline = time.monotonic() + timeout
    try:
        while not _greet(wire, endpoint, clock):
            if time.monotonic() > deadline:
                raise Loading(f"the server at {address} is still loading its data")
            time.sleep(_LOADING_PAUSE)
    except MqError:
        wire.close()
        raise
    return wire


def _local(
    spec: str, fsync: Fsync, started: Callable[[str], None] | None
) -> socket.socket:
    import os

    from mqctl.store import embedded

    instance = embedded.locate(spec, os.environ)
    embedded.ensure(instance, fsync=fsync, on_start=_announce(started))
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(str(instance.socket))
    except OSError as error:
        sock.close()
        raise Unreachable(f"cannot reach the local server: {error.strerror}") from error
    return sock


def _announce(
    started: Callable[[str], None] | None,
) -> Callable[[object], None] | None:
    if started is None:
        return None

    def tell(_: object) -> None:
        started("started the local server; it stays until: mqctl server stop")

    return tell


def _connect(endpoint: Endpoint, timeout: float) -> socket.socket:
    where = endpoint.shown
    try:
        if endpoint.path is not None:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.settimeout(timeout)
                sock.connect(endpoint.path)
            except OSError:
                sock.close()
                raise
            return sock
        sock = socket.create_connection((endpoint.host, endpoint.port), timeout)
    except TimeoutError as error:
        raise Unreachable(
            f"cannot reach {where}: no answer in {timeout:g} s"
        ) from error
    except UnicodeError as error:
        raise Unreachable(f"cannot reach {where}: not a host name") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise Unreachable(f"cannot reach {where}: {reason}") from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return sock if endpoint.tls is None else _secure(sock, endpoint, endpoint.tls)


def _secure(sock: socket.socket, endpoint: Endpoint, tls: Tls) -> socket.socket:
    import ssl

    try:
        context = ssl.create_default_context(cafile=tls.ca)
        if tls.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if tls.cert:
            context.load_cert_chain(tls.cert, tls.key)
    except OSError as error:
        sock.close()
        raise BadConfig(f"cannot load the TLS files: {error}") from error
    try:
        return context.wrap_socket(sock, server_hostname=endpoint.host)
    except (ssl.SSLError, OSError) as error:
        sock.close()
        hint = "--tls-ca FILE names the authority, --insecure turns the check off"
        raise Unreachable(
            f"TLS with {endpoint.shown} failed: {error}", hint=hint
        ) from error


def _greet(wire: Wire, endpoint: Endpoint, clock: SystemClock) -> bool:
    """Log in and learn the server's kind and time; False while it is loading."""
    commands: list[tuple[str | int, ...]] = []
    if endpoint.password is not None:
        user = [endpoint.username] if endpoint.username else []
        commands.append(("AUTH", *user, endpoint.password))
    if endpoint.db:
        commands.append(("SELECT", endpoint.db))
    commands += [("TIME",), ("HELLO",)]
    replies = wire.batch(commands)
    for command, reply in zip(commands, replies, strict=True):
        if not isinstance(reply, ServerError):
            continue
        if reply.kind == "LOADING":
            return False
        if command[0] != "HELLO" or reply.kind == "NOAUTH":
            raise _refused(reply, str(command[0]), wire.address)
    seconds, micros = (int(part) for part in replies[-2])
    clock.follow(seconds * 1000 + micros // 1000)
    greeting = replies[-1]
    wire.cluster = isinstance(greeting, list) and b"cluster" in greeting[1::2]
    return True


def _refused(reply: ServerError, command: str, address: str) -> MqError:
    if command == "AUTH" or reply.kind in {"NOAUTH", "WRONGPASS"}:
        what = (
            "wants a password"
            if reply.kind == "NOAUTH"
            else f"refused the login: {reply.text}"
        )
        return AuthFailed(
            f"the server at {address} {what}",
            hint="set MQCTL_PASSWORD, or use redis://:PASSWORD@HOST:PORT",
        )
    if reply.kind == "NOPERM":
        return Denied(f"the server at {address} does not permit {command}")
    return Unreachable(f"the server at {address} answered {command} with: {reply.text}")
