"""The file of profiles: found, read with care, replaced as a whole."""

import os
import stat
import sys
from pathlib import Path

import platformdirs
import pytest

from mqctl.config import file
from mqctl.core.errors import BadConfig


@pytest.mark.parametrize("base", [None, "/tmp/base"])
def test_the_file_is_where_the_platform_keeps_such_files(
    monkeypatch: pytest.MonkeyPatch, base: str | None
) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    if base:
        monkeypatch.setenv("XDG_CONFIG_HOME", base)
    monkeypatch.delenv("MQCTL_CONFIG")

    directory = platformdirs.user_config_dir("mqctl", appauthor=False)

    assert file.location(os.environ) == f"{directory}/config.toml"
    assert base is None or not sys.platform.startswith("linux") or base in directory


def test_the_environment_names_another_file() -> None:
    assert file.location({"MQCTL_CONFIG": "/x/y"}) == "/x/y"
    assert file.location({"MQCTL_CONFIG": "y"}) == f"{Path.cwd()}/y"


def test_what_is_written_is_private_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.toml"

    file.write(str(path), "# é\n")

    assert file.read(str(path)) == ("# é\n", False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_was_open_to_others_is_closed_and_nothing_is_left_beside(
    tmp_path: Path,
) -> None:
    path = tmp_path / "config.toml"
    path.write_text("")
    path.chmod(0o644)
    assert file.read(str(path)) == ("", True)

    file.write(str(path), "x")

    assert file.read(str(path)) == ("x", False)
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link, target = tmp_path / "config.toml", tmp_path / "mine.toml"
    target.write_text("")
    link.symlink_to(target)

    file.write(str(link), "x")

    assert link.is_symlink()
    assert target.read_text() == "x"


def test_a_file_that_anybody_may_write_to_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("")
    path.chmod(0o666)

    with pytest.raises(BadConfig, match="anybody may write") as caught:
        file.read(str(path))
    assert caught.value.hint == f"chmod 600 {path}"


def test_what_cannot_be_read_or_written_is_said_in_one_line(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff")

    with pytest.raises(BadConfig, match="Is a directory"):
        file.read(str(tmp_path))
    with pytest.raises(BadConfig, match="not UTF-8"):
        file.read(str(binary))
    with pytest.raises(BadConfig, match="cannot write"):
        file.write(str(binary / "config.toml"), "")
