"""The top of the command line: help, version, and what was probably meant."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from mqctl import __version__
from mqctl.cli.commands import PLACES, app
from mqctl.cli.docs import Node, tree
from mqctl.cli.main import run
from mqctl.store import embedded
from tests.support.server import Server, short_directory
from tests.support.shell import environment, shell

NODES = list(tree(app).walk())
COMMANDS = [node for node in NODES if not node.children]


@pytest.mark.parametrize("words", [["--version"], ["--help"], []])
def test_what_asks_nothing_of_a_server_succeeds(
    capfd: pytest.CaptureFixture[str], words: list[str]
) -> None:
    code = run(words)
    out, err = capfd.readouterr()

    assert (code, err) == (0, "")
    assert out.startswith(
        {"--version": f"mqctl {__version__}\n", "--help": "Usage: mqctl "}.get(
            "".join(words), "mqctl: partitioned, durable message queues"
        )
    )


def test_the_short_text_names_commands_that_exist(
    capfd: pytest.CaptureFixture[str],
) -> None:
    run([])
    text = capfd.readouterr().out

    paths = {node.path for node in NODES}
    for line in text.splitlines():
        if line.startswith("  "):
            words = line[line.index("mqctl ") :].split()
            assert {" ".join(words[:2]), " ".join(words[:3])} & paths, line


@pytest.mark.parametrize("node", [n for n in NODES if n.children and " " in n.path])
def test_a_group_alone_shows_its_help(
    capfd: pytest.CaptureFixture[str], node: Node
) -> None:
    words = node.path.split()[1:]

    codes = run(words), run([*words, "--help"])
    out, err = capfd.readouterr()

    assert (codes, err) == ((0, 0), "")
    assert out.count(f"Usage: {node.path} [OPTIONS] COMMAND [ARGS]...") == 2


@pytest.mark.parametrize("node", NODES, ids=lambda node: node.path)
def test_help_fits_eighty_columns_and_says_each_thing_in_a_sentence(
    capfd: pytest.CaptureFixture[str], node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    assert run([*node.path.split()[1:], "--help"]) == 0

    text = capfd.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert node.summary.endswith(".")
    assert "..." not in text.partition("Commands:")[2]  # no summary was cut
    assert "<str>" not in text
    assert "<int>" not in text
    for option in node.options:
        assert option.help[:1].isupper() or option.choices, option
        assert option.help.endswith("."), option
    for name, help_text in node.arguments:
        assert help_text.endswith("."), name


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["prodce"], "did you mean produce?"),
        (["server", "strat"], "did you mean start?"),
        (["produce", "--partitons", "2", "t"], "did you mean --partitions?"),
    ],
)
def test_a_slip_of_the_finger_is_answered_with_what_was_meant(
    capfd: pytest.CaptureFixture[str], words: list[str], meant: str
) -> None:
    code = run(words)
    err = capfd.readouterr().err

    assert code == 2
    assert meant in err.splitlines()[0]
    path = " ".join(["mqctl", *words[: len(words) - 1][:1]]).strip()
    assert err.splitlines()[1] == f"hint: {path} --help"


def test_what_resembles_nothing_gets_no_guess(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run(["xyzzy"]) == 2
    assert capfd.readouterr().err == (
        "mqctl: no such command: xyzzy\nhint: mqctl --help\n"
    )


def test_a_bug_is_one_line_and_exit_70(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = typer.Typer()

    @broken.command()
    def fail() -> None:
        raise ZeroDivisionError("never\nmind")

    monkeypatch.setattr("mqctl.cli.main._app", lambda *_: broken)

    assert run([]) == 70
    err = capfd.readouterr().err
    assert err.startswith(
        f"mqctl: this is a bug in mqctl {__version__} at test_main.py"
    )
    assert err.endswith("ZeroDivisionError: never\\nmind (MQCTL_DEBUG=1 shows more)\n")
    assert err.count("\n") == 1


def test_an_interrupt_is_raised_again_for_the_shell_to_see(redis: Server) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "mqctl", "produce", "t", "--print", "id"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(redis.url),
    )
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"one\n")
    process.stdin.flush()
    process.stdout.readline()

    process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=20)[1].decode()

    assert process.returncode == -signal.SIGINT
    assert "1 stored" in err
    assert err.count("\n") <= 2


_ID = "1767325445678-0"
_DEAD = "stream:topic:orders:dlq"
_ENTRY = {"payload": "x", "retryCount": 0, "maxRetries": 3, "topic": "orders"}


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[str, Path]]:
    """A local server with what the examples speak of, and a directory to run in."""
    with short_directory() as directory:
        url = f"local:{directory / 'server'}"
        charge = directory / "charge.sh"
        charge.write_text("#!/bin/sh\ncat >/dev/null\n")
        charge.chmod(0o700)
        instance = embedded.locate(url, os.environ)
        try:
            embedded.ensure(instance, fsync="no")
            server = Server(instance.socket)
            fields = [part for pair in _ENTRY.items() for part in pair]
            server.call("XADD", "stream:topic:orders:p:0", _ID, *fields)
            _mqctl(url, "produce orders --partitions 8 a b c d e f")
            _mqctl(url, "consume orders -g billing -n 3 --retry-max 0 -- false")
            _name_first_dead_letter(server)
            yield url, directory
        finally:
            embedded.stop(instance, 20)


def _name_first_dead_letter(server: Server) -> None:
    letters = server.call("XRANGE", _DEAD, "-", "+")
    server.call("DEL", _DEAD)
    for entry_id, (_, fields) in zip((_ID, "*", "*"), letters, strict=True):
        server.call("XADD", _DEAD, entry_id, *fields)


def _mqctl(url: str, line: str) -> None:
    name, *words = line.split()
    assert run([name, "-u", url, "-q", *words]) == 0, line


@pytest.mark.parametrize("node", COMMANDS, ids=lambda node: node.path)
def test_help_ends_with_an_example_that_works(
    world: tuple[str, Path], node: Node, capfd: pytest.CaptureFixture[str]
) -> None:
    url, directory = world
    _mqctl(url, "produce orders more")  # something to read, whoever ran before
    env = {"MQCTL_CONFIG": str(directory / "config.toml")}
    if node.path == "mqctl config unset":
        shell("mqctl config set claim_idle 10m", url, **env)
    if node.name == "delete-group":
        _mqctl(url, "consume orders -g audit -e -o none")

    assert run([*node.path.split()[1:], "--help"]) == 0
    text, end, example = capfd.readouterr().out.rpartition("\n  Example:\n    ")
    assert end, f"{node.path} has no example"
    assert f"Usage: {node.path} " in text
    assert node.path in example
    follows = "-f" in example.split()
    line = f"timeout -s INT 2 {example}" if follows else example
    result = shell(line, url, cwd=directory, timeout=30, **env)
    if "this needs --yes" in result.err:  # a terminal would have asked
        assert result.code == 6
        result = shell(f"{line.strip()} --yes", url, cwd=directory, timeout=30, **env)

    assert result.code == (124 if follows else 0), result.err
    assert "hint:" not in result.err


def test_the_list_of_commands_says_what_the_commands_say() -> None:
    said = {node.name: node.summary for node in tree(app).children}

    assert said == {name: text for name, (_, text) in PLACES.items() if text}


def test_every_command_and_option_is_reached_by_one_name() -> None:
    for node in NODES:
        names = [name for option in node.options for name in option.names]
        assert len(names) == len(set(names)), node.path
    assert len({node.path for node in NODES}) == len(NODES)


def test_errors_are_objects_whatever_the_place_of_the_format(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run(["consume", "t", "-o", "ndjson"]) == 2

    error = json.loads(capfd.readouterr().err)["error"]
    assert (error["code"], error["exit"]) == ("usage", 2)
    assert error["hint"] == "mqctl consume --help"
