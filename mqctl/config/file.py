"""The file of profiles: where it is, read with care, replaced as a whole."""

import os
import stat
import sys
from collections.abc import Mapping

from mqctl.core.errors import BadConfig

CONFIG = "MQCTL_CONFIG"

_LINUX: bool = sys.platform.startswith("linux")


def location(environ: Mapping[str, str]) -> str:
    """Return the path of the file, which need not exist."""
    chosen = environ.get(CONFIG)
    if chosen:
        return os.path.abspath(chosen)  # noqa: PTH100 - pathlib takes time to load
    return f"{_directory(environ)}/config.toml"


def _directory(environ: Mapping[str, str]) -> str:
    if _LINUX:  # the same, without the time that platformdirs takes to load
        base = environ.get("XDG_CONFIG_HOME", "").strip()
        return f"{base or os.path.expanduser('~/.config')}/mqctl"  # noqa: PTH111
    import platformdirs

    return platformdirs.user_config_dir("mqctl", appauthor=False)


def exists(path: str) -> bool:
    """Tell whether there is something at a path, readable or not."""
    return os.path.lexists(path)


def read(path: str) -> tuple[str, bool]:
    """Return the file's text, and whether others may read it.

    BadConfig when it cannot be read or anybody may write to it.
    """
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            mode = os.fstat(file.fileno()).st_mode
            if mode & stat.S_IWOTH and os.name == "posix":
                raise BadConfig(
                    f"anybody may write to the config file {path}",
                    hint=f"chmod 600 {path}",
                )
            text = file.read()
    except OSError as error:
        raise BadConfig(
            f"cannot read the config file {path}: {error.strerror}"
        ) from error
    except UnicodeError:
        raise BadConfig(f"the config file {path} is not UTF-8 text") from None
    return text, bool(mode & (stat.S_IRGRP | stat.S_IROTH)) and os.name == "posix"


def write(path: str, text: str) -> None:
    """Replace the file in one step, mode 0600; a directory made for it has 0700.

    A crash leaves the old file or the new one. BadConfig when it cannot be written.
    """
    import tempfile

    target = os.path.realpath(path)  # a link stays one
    directory = os.path.dirname(target)  # noqa: PTH120
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)  # noqa: PTH103
        descriptor, new = tempfile.mkstemp(prefix=".config-", dir=directory)  # 0600
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(descriptor)
            os.replace(new, target)  # noqa: PTH105
        except BaseException:
            os.unlink(new)  # noqa: PTH108
            raise
    except OSError as error:
        raise BadConfig(
            f"cannot write the config file {path}: {error.strerror}"
        ) from error
