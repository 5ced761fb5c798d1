"""Where an embedded server lives, and that nobody else can enter there."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mqctl.core.errors import BadConfig, BadUsage

DATA_DIR = "MQCTL_DATA_DIR"

_ELSEWHERE = f"set {DATA_DIR} to a directory you can write to"
_SCHEME = "local"
_LOCK = "server.lock"
# What sockaddr_un holds on macOS; Linux has room for 4 bytes more.
_LONGEST_SOCKET_PATH = 103


@dataclass(frozen=True, slots=True)
class Instance:
    """One embedded server: its name, its data directory and its socket."""

    name: str
    dir: Path
    socket: Path

    @property
    def url(self) -> str:
        """The address that reaches it: `local`, `local:NAME` or `local:/DIR`."""
        return _SCHEME if self.name == _SCHEME else f"{_SCHEME}:{self.name}"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.dir / "server.log"

    @property
    def pidfile(self) -> Path:
        """Written by the server, for people; never trusted, never signalled."""
        return self.dir / "server.pid"

    @property
    def lock(self) -> Path:
        """Locked by the starter, then by the server for as long as it lives."""
        return self.dir / _LOCK


def locate(spec: str, env: Mapping[str, str]) -> Instance:
    """Return the instance that `local`, `local:NAME` or `local:/DIR` means.

    Nothing is created. One directory has one socket, whatever link leads to it.
    Raises BadUsage for another spec.
    """
    scheme, colon, name = spec.partition(":")
    if not colon:
        name = _SCHEME
    if scheme != _SCHEME or not name.isprintable():
        raise _no_instance(spec)
    if name.startswith("/"):
        directory = Path(os.path.realpath(name))
        return Instance(str(directory), directory, _socket_of(directory))
    if not name or name.startswith(".") or "/" in name:
        raise _no_instance(spec)
    directory = Path(os.path.realpath(_base(env))) / "servers" / name
    return Instance(name, directory, _socket_of(directory))


def _no_instance(spec: str) -> BadUsage:
    return BadUsage(
        f"{spec!r} names no embedded server: "
        "it is `local`, `local:NAME` or `local:/DIRECTORY`"
    )


def _base(env: Mapping[str, str]) -> str:
    chosen = env.get(DATA_DIR)
    if chosen:
        return chosen
    import platformdirs

    return platformdirs.user_data_dir("mqctl", appauthor=False)


def _socket_of(directory: Path) -> Path:
    inside = directory / "server.sock"
    if len(os.fsencode(inside)) <= _LONGEST_SOCKET_PATH:
        return inside
    import hashlib

    digest = hashlib.blake2b(os.fsencode(directory), digest_size=16).hexdigest()
    # Not XDG_RUNTIME_DIR: it goes with the login session, the server stays, and a
    # cron job that has none must find the same socket.
    return Path(f"/tmp/mqctl-{os.getuid()}") / f"{digest}.sock"  # noqa: S108


def prepare(instance: Instance) -> None:
    """Create the instance's directories, 0700; raise BadConfig when one cannot be.

    A directory of ours that is open to others is closed to them, unless it has
    other contents: then it is somebody's project or system, not a data directory.
    """
    _make_private(instance.dir)
    if instance.socket.parent != instance.dir:
        _make_private(instance.socket.parent)


def check_private(directory: Path) -> os.stat_result | None:
    """Return the directory's status, None when it is not there.

    Raises BadConfig when it is no directory (a link to one is none) or belongs to
    another user, who could read every message and answer in the server's place.
    """
    try:
        status = directory.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(directory, error) from error
    if not stat.S_ISDIR(status.st_mode):
        raise BadConfig(
            f"the server's directory {directory} is not a directory",
            hint=_ELSEWHERE,
            file=str(directory),
        )
    if status.st_uid != os.getuid():
        raise BadConfig(
            f"the server's directory {directory} belongs to user {status.st_uid}, "
            f"not to you ({os.getuid()})",
            hint=_ELSEWHERE,
            file=str(directory),
        )
    return status


def _make_private(directory: Path) -> None:
    try:
        if check_private(directory) is None:
            directory.parent.mkdir(parents=True, exist_ok=True)
            directory.mkdir(mode=0o700, exist_ok=True)
        status = check_private(directory)
        if status is not None and status.st_mode & 0o077:
            _refuse_shared(directory)
            directory.chmod(status.st_mode & 0o700)
    except OSError as error:
        raise _unusable(directory, error) from error


def _refuse_shared(directory: Path) -> None:
    contents = {entry.name for entry in os.scandir(directory)}
    if contents and _LOCK not in contents:
        raise BadConfig(
            f"{directory} is open to other users and holds other files; "
            "a server wants a directory of its own",
            hint=f"use {_SCHEME}:{directory / 'mqctl'}",
            file=str(directory),
        )


def _unusable(directory: Path, error: OSError) -> BadConfig:
    reason = error.strerror or str(error)
    return BadConfig(
        f"cannot keep a server's data in {directory}: {reason}",
        hint=_ELSEWHERE,
        file=str(directory),
    )
