"""Real servers for tests: reached at an address, started, killed, started again."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hiredis

from mqctl.store import embedded, launch
from tests.support.wait import wait_until

_CLUSTER_BUS = 10_000


@dataclass
class Server:
    """A server at a unix socket or, when it has a port, at 127.0.0.1."""

    socket: Path | None = None
    port: int | None = None

    @property
    def url(self) -> str:
        if self.port is not None:
            return f"redis://127.0.0.1:{self.port}"
        return f"unix://{self.socket}"

    def call(self, *args: Any) -> Any:
        """Run one command on a connection of its own; an error reply is raised."""
        with _connect(self) as sock:
            sock.sendall(hiredis.pack_command(args))
            reader = hiredis.Reader()
            while (reply := reader.gets()) is False:
                data = sock.recv(1 << 16)
                if not data:
                    raise ConnectionError(f"{self.url} closed the connection")
                reader.feed(data)
        if isinstance(reply, hiredis.ReplyError):
            raise reply
        return reply

    def info(self) -> dict[str, str]:
        """Return the fields of INFO."""
        lines = self.call("INFO").decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    @property
    def answers(self) -> bool:
        try:
            return bool(self.call("PING") == b"PONG")
        except (OSError, hiredis.ReplyError):
            return False


def _connect(server: Server) -> socket.socket:
    if server.port is not None:
        return socket.create_connection(("127.0.0.1", server.port), timeout=30)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(30)
    try:
        sock.connect(str(server.socket))
    except OSError:
        sock.close()
        raise
    return sock


@dataclass
class TestServer(Server):
    """A server process of the test's own, which it may kill and start again."""

    __test__ = False  # no test class, whatever its name

    directory: Path = field(kw_only=True)
    arguments: list[str] = field(kw_only=True)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process and wait until it has loaded its data."""
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.arguments, cwd=self.directory, stdout=log, stderr=log
            )
        process = self.process
        try:
            wait_until(lambda: process.poll() is not None or self.answers, "an answer")
        finally:
            if not self.answers:
                self.kill()
        if process.poll() is not None:
            raise RuntimeError((self.directory / "log").read_text())

    @property
    def pid(self) -> int:
        """The process, also when it has ended."""
        assert self.process, "never started"
        return self.process.pid

    def kill(self) -> None:
        """End it with SIGKILL, as a crash does."""
        if self.process:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        """End it with SIGTERM, the orderly way; nothing when it is not running."""
        if self.process:
            self.process.terminate()
            self.process.wait(timeout=20)

    def restart(self) -> None:
        """Start it again with the data it has on disk, killed before when it runs."""
        self.kill()
        self.start()


def start_server(directory: Path, *extra_args: str) -> TestServer:
    """Start a server on `directory`/s, or on a TCP port with `--port`.

    It has append-only persistence, written before each reply, not synced.
    """
    program = launch.find_program(os.environ)
    path = directory / "s"
    arguments = [
        *(program.path, "--port", "0", "--dir", str(directory)),
        *("--unixsocket", str(path), "--save", ""),
        *("--appendonly", "yes", "--appendfsync", "no"),
        *extra_args,
    ]
    port = (
        int(extra_args[extra_args.index("--port") + 1])
        if "--port" in extra_args
        else None
    )
    server = TestServer(path, port, directory=directory, arguments=arguments)
    server.start()
    return server


def start_cluster_node(directory: Path) -> TestServer:
    """Start a cluster of one node, which holds all slots, on a free loopback port."""
    port = _free_port()
    server = start_server(
        directory,
        *("--port", str(port), "--bind", "127.0.0.1"),
        *("--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"),
        *("--cluster-node-timeout", "500", "--appendonly", "no"),
    )
    try:
        server.call("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        wait_until(
            lambda: b"cluster_state:ok" in server.call("CLUSTER", "INFO"), "state ok"
        )
    except BaseException:
        server.kill()
        raise
    return server


def _free_port() -> int:
    """Return a port that is free, with that of the cluster's bus."""

    def attempt() -> int:
        with socket.socket() as plain, socket.socket() as bus:
            plain.bind(("127.0.0.1", 0))
            port: int = plain.getsockname()[1]
            try:
                bus.bind(("127.0.0.1", port + _CLUSTER_BUS))
            except (OSError, OverflowError):
                return 0
            return port

    return wait_until(attempt, "a free port")


@contextmanager
def short_directory() -> Iterator[Path]:
    """Make a directory whose sockets have short paths; removed at the end."""
    path = Path(tempfile.mkdtemp(prefix="mq-", dir="/tmp")).resolve()
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextmanager
def embedded_server(directory: Path) -> Iterator[Server]:
    """Run the embedded server in `directory`, stopped at the end."""
    instance = embedded.locate(f"local:{directory}", os.environ)
    try:
        embedded.ensure(instance, fsync="no")
        yield Server(instance.socket)
    finally:
        embedded.stop(instance, 20)
