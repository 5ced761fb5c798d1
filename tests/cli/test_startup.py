"""What a command loads, and how much memory it takes: no more than it needs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server import Server
from tests.support.shell import environment

_MODULES = """
import sys
from mqctl.cli.main import run
code = run(sys.argv[1:])
sys.stderr.write(" ".join(sys.modules))
sys.exit(code)
"""
_MEMORY = """
import sys
from mqctl.cli.main import run
code = run(sys.argv[1:])
status = open("/proc/self/status").read()
sys.stderr.write(status.partition("VmHWM:")[2].split()[0])
sys.exit(code)
"""
HEAVY = frozenset({"redis", "rich", "pydantic", "asyncio", "ssl", "valkey"})


def python(script: str, url: str, *words: str) -> str:
    """Run a command line in a new interpreter; return what it says at its end."""
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        env=environment(url),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("produce", "t", "x"),
        ("produce", "t", "x", "--print", "ndjson"),
        ("consume", "t", "-g", "g", "-e", "-q", "-o", "raw"),
        ("consume", "t", "-g", "h", "-e", "-q", "-o", "ndjson"),
        ("consume", "t", "-g", "i", "-e", "-q", "--", "true"),
        ("--help",),
        ("--version",),
        ("produce", "--help"),
        ("admin", "--help"),
    ],
    ids=" ".join,
)
def test_nothing_heavy_is_loaded(redis: Server, words: tuple[str, ...]) -> None:
    python(_MODULES, redis.url, "produce", "t", "x")

    loaded = set(python(_MODULES, redis.url, *words).split())

    assert "mqctl.cli.main" in loaded
    assert not HEAVY & loaded


@pytest.mark.parametrize("words", [("--help",), (), ("--version",)])
def test_the_list_of_commands_loads_no_command(words: tuple[str, ...]) -> None:
    loaded = set(python(_MODULES, "redis://nowhere.invalid", *words).split())

    assert (
        not {
            f"mqctl.{name}"
            for name in ("engine", "store", "codecs", "cli.produce", "cli.admin")
        }
        & loaded
    )


def test_a_command_loads_no_other() -> None:
    loaded = set(
        python(_MODULES, "redis://nowhere.invalid", "produce", "--help").split()
    )

    assert "mqctl.cli.produce" in loaded
    assert not {"mqctl.cli.admin", "mqctl.cli.consume", "mqctl.engine"} & loaded


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_producing_ten_times_as_much_takes_no_more_memory(
    redis: Server, tmp_path: Path
) -> None:
    taken = []
    for lines in (10_000, 100_000):
        path = tmp_path / str(lines)
        path.write_text("".join(f"message {n} {'x' * 80}\n" for n in range(lines)))
        taken.append(
            int(python(_MEMORY, redis.url, "produce", "t", "--file", str(path)))
        )

    assert redis.call("XLEN", "stream:topic:t:p:0") == 110_000
    assert taken[1] < taken[0] * 1.1
