"""Shell lines with mqctl in them, as a user types them."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from mqctl.cli.main import run
from tests.support.server import Server


@dataclass(frozen=True, slots=True)
class Result:
    """What a line left behind."""

    code: int
    out: bytes
    err: str


def environment(url: str, **more: str) -> dict[str, str]:
    """Return an environment in which `mqctl` is ours and means the server at `url`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MQCTL_", "REDIS_"))
    }
    programs = Path(sys.executable).parent
    return kept | {
        "PATH": f"{programs}:{kept.get('PATH', os.defpath)}",
        "MQCTL_URL": url,
        "MQCTL_DATA_DIR": "/dev/null/never",  # nobody's own server is started
        "MQCTL_CONFIG": "/dev/null/never",  # nobody's own profile is used
        "NO_COLOR": "1",
        **more,
    }


def shell(
    line: str,
    server: Server | str,
    *,
    cwd: Path | None = None,
    timeout: float = 60,
    **env: str,
) -> Result:
    """Run a line of bash; standard input is empty unless the line says otherwise."""
    url = server if isinstance(server, str) else server.url
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=cwd,
        env=environment(url, **env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr.decode())


def inside(
    server: Server, capture: pytest.CaptureFixture[bytes]
) -> Callable[[str], Result]:
    """Return what runs one mqctl command line in this process, much faster."""

    def mqctl(line: str) -> Result:
        words = shlex.split(line)
        end = words.index("--") if "--" in words else len(words)
        capture.readouterr()
        code = run([*words[:end], "-u", server.url, *words[end:]])
        out, err = capture.readouterr()
        return Result(code, out, err.decode())

    return mqctl
