"""Server programs that are not what they should be."""

import os
import shlex
from pathlib import Path

from mqctl.store import launch

REAL_VERSION = "Redis server v=7.0.15 sha=00000000:0 malloc=libc bits=64 build=0"


def real_program() -> str:
    """Return the path of a server program that works."""
    return launch.find_program(os.environ).path


def program_that(path: Path, *, version: str = REAL_VERSION, then: str) -> Path:
    """Write a program that tells `version` and otherwise runs the shell line `then`."""
    path.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = --version ]; then echo {shlex.quote(version)}; exit; fi\n'
        f"{then}\n"
    )
    path.chmod(0o700)
    return path
