"""The README says what happens: its transcripts are run and compared."""

import os
import re
from pathlib import Path

import pytest

from mqctl.store import embedded
from tests.support.server import short_directory
from tests.support.shell import environment
from tests.support.transcript import masked, play, steps

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
FIRST = (
    "pip install . && seq 1000 | mqctl produce demo --partitions 4 && "
    "mqctl consume demo -g readers -e | sort -n | tail -1"
)
SECOND = "pip install -e '.[dev]' && pytest"


def test_every_transcript_shows_what_a_terminal_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with short_directory() as directory:
        env = environment("local", MQCTL_DATA_DIR=str(directory), TERM="xterm")
        del env["MQCTL_URL"]
        monkeypatch.chdir(directory)
        found = steps(README)
        try:
            shown = [play(step.command, directory, env) for step in found]
        finally:
            embedded.stop(embedded.locate("local", env), 20)

    assert len(found) > 10
    for step, text in zip(found, shown, strict=True):
        assert masked(text) == masked(step.output), step.command


def test_the_python_example_runs_as_it_stands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (source,) = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    with short_directory() as directory:
        monkeypatch.setenv("MQCTL_DATA_DIR", str(directory))
        try:
            exec(compile(source, "README.md", "exec"), {})
        finally:
            embedded.stop(embedded.locate("local", os.environ), 20)

    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("stored ")
    assert sorted(shown[1:]) == sorted(
        [
            """1 b'{"id":1,"total":20}'""",
            "1",
            "dead: no-customer b''",
            "dead: no-customer b'\\xff bytes'",
            "dead: no-customer b'text'",
        ]
    )


def test_the_two_commands_are_there_and_run_in_ci() -> None:
    script = (ROOT / ".ci" / "run").read_text()

    for command in (FIRST, SECOND):
        assert f"\n{command}\n" in README
        assert command in script


def test_the_changelog_comes_last() -> None:
    headings = [line for line in README.splitlines() if line.startswith("## ")]

    assert headings[-1] == "## Changelog"


def test_every_package_is_on_the_map() -> None:
    for package in sorted((ROOT / "mqctl").iterdir()):
        if package.is_dir() and (package / "__init__.py").exists():
            assert f"`{package.name}`" in README, package.name
