"""Completions and man pages: generated, fresh, and understood by their readers."""

import shutil
import subprocess
from pathlib import Path

import pytest

from mqctl.cli.commands import app
from mqctl.cli.docs import tree
from mqctl.cli.main import run
from tests.support.shell import shell

NOWHERE = "redis://203.0.113.1"


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("docs")
    assert run(["docs", str(directory), "-q"]) == 0
    return directory


def test_each_top_level_command_has_a_page(docs: Path) -> None:
    names = {node.path.replace(" ", "-") for node in tree(app).children}

    assert {p.stem for p in (docs / "man").iterdir()} == {"mqctl", *names}


def test_every_option_is_in_its_page(docs: Path) -> None:
    for node in tree(app).walk():
        words = node.path.split()[:2]
        page = (docs / "man" / f"{'-'.join(words)}.1").read_text()
        for option in node.options if node.path != "mqctl" else ():
            for name in option.names:
                assert name.replace("-", r"\-") in page, (node.path, name)


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_the_man_pages_are_sound_roff(docs: Path) -> None:
    for page in sorted((docs / "man").iterdir()):
        done = subprocess.run(
            ["groff", "-man", "-ww", "-Tutf8", page],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == "", page.name
        assert "NAME" in done.stdout


def test_a_directory_that_cannot_be_written_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "completions").write_text("")

    assert run(["docs", str(tmp_path)]) == 74
    assert "cannot write" in capfd.readouterr().err


def complete(docs: Path, *words: str) -> list[str]:
    """Press TAB after the last word, in bash."""
    listed = " ".join(f"'{word}'" for word in words)
    line = (
        f"source {docs}/completions/mqctl.bash; PATH=/nowhere;"
        f" COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1};"
        ' _mqctl; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    result = shell(line, NOWHERE, cwd=docs)  # nothing can be started or asked
    assert (result.code, result.err) == (0, "")
    return result.out.decode().split()


def test_bash_can_read_its_completion(docs: Path) -> None:
    path = docs / "completions" / "mqctl.bash"

    subprocess.run(["bash", "-n", path], check=True)
    assert shell(f"source {path}; complete -p mqctl", NOWHERE).out == (
        b"complete -F _mqctl mqctl\n"
    )


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("mqctl", "pro"), ["produce"]),
        (("mqctl", "server", "sta"), ["start", "status"]),
        (("mqctl", "produce", "--partitions"), ["--partitions"]),
        (("mqctl", "produce", "t", "--max-b"), ["--max-bytes"]),
        (("mqctl", "server", "start", "--fsync", ""), ["always", "everysec", "no"]),
        (("mqctl", "server", "start", "--fsync", "=", "ev"), ["everysec"]),
        (("mqctl", "consume", "t", "--ack", "m"), ["manual"]),
        (("mqctl", "produce", "--file", "man/mqctl-s"), ["man/mqctl-server.1"]),
        (("mqctl", "consume", "t", "--", "man/mqctl-s"), ["man/mqctl-server.1"]),
        (("mqctl", "produce", "--key", ""), []),
        (("mqctl", "produce", ""), []),
        (("mqctl", "xyzzy", ""), [c.name for c in tree(app).children]),
    ],
)
def test_bash_completes(docs: Path, words: tuple[str, ...], found: list[str]) -> None:
    assert complete(docs, *words) == found


def test_bash_completes_every_command_and_option(docs: Path) -> None:
    for node in tree(app).walk():
        words = node.path.split()
        assert complete(docs, *words, "") == [child.name for child in node.children]
        names = [name for option in node.options for name in option.names]
        assert complete(docs, *words, "-") == names


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_can_read_its_completion(docs: Path) -> None:
    subprocess.run(["zsh", "-n", docs / "completions" / "mqctl.zsh"], check=True)


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("mqctl pro", ["produce"]),
        ("mqctl server sta", ["start", "status"]),
        ("mqctl server start --fsync ", ["always", "everysec", "no"]),
        ("mqctl produce t --max-b", ["--max-bytes"]),
    ],
)
def test_fish_completes(docs: Path, line: str, found: list[str]) -> None:
    done = subprocess.run(
        ["fish", "-c", f"source completions/mqctl.fish; complete -C '{line}'"],
        cwd=docs,
        capture_output=True,
        text=True,
        check=True,
    )

    words = [one.partition("\t")[0] for one in done.stdout.splitlines()]
    assert (sorted(words), done.stderr) == (found, "")
