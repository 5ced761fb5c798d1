import os
from pathlib import Path

import pytest

from mqctl.core.errors import BadConfig, BadUsage
from mqctl.store.instance import Instance, check_private, locate, prepare


def mode(path: Path) -> int:
    return path.lstat().st_mode & 0o777


def at(directory: Path) -> Instance:
    return locate(f"local:{directory}", {})


def test_local_is_one_instance_of_the_data_directory(tmp_path: Path) -> None:
    here = locate("local", {"MQCTL_DATA_DIR": str(tmp_path)})
    assert here.dir == tmp_path / "servers" / "local"
    assert here.url == "local"
    assert here.socket == here.dir / "server.sock"
    assert {here.log.parent, here.pidfile.parent, here.lock.parent} == {here.dir}


def test_a_name_is_another_instance(tmp_path: Path) -> None:
    env = {"MQCTL_DATA_DIR": str(tmp_path)}
    there = locate("local:orders", env)
    assert there.dir == tmp_path / "servers" / "orders"
    assert there.url == "local:orders"
    assert there.dir != locate("local", env).dir


def test_a_path_is_an_instance_of_its_own(tmp_path: Path) -> None:
    assert at(tmp_path).dir == tmp_path
    assert at(tmp_path).url == f"local:{tmp_path}"


def test_the_platforms_data_directory_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    found = locate("local", {})
    assert tmp_path in found.dir.parents
    assert "mqctl" in found.dir.parts


def test_locating_creates_nothing(tmp_path: Path) -> None:
    at(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_a_link_leads_to_the_same_instance(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    assert at(tmp_path / "link") == at(tmp_path / "data")


@pytest.mark.parametrize(
    "spec", ["local:", "local:a/b", "local:.", "local:..", "local:a\nb", "remote", ""]
)
def test_a_spec_that_names_no_instance_is_refused(spec: str) -> None:
    with pytest.raises(BadUsage, match="names no embedded server"):
        locate(spec, {"MQCTL_DATA_DIR": "/nowhere"})


def test_long_directories_have_short_sockets_of_their_own(tmp_path: Path) -> None:
    one, two = at(tmp_path / ("x" * 150)), at(tmp_path / ("y" * 150))
    assert one == at(tmp_path / ("x" * 150))
    assert one.socket != two.socket
    for instance in (one, two):
        assert len(os.fsencode(instance.socket)) <= 103
        assert instance.socket.parent.name == f"mqctl-{os.getuid()}"


def test_the_longest_path_that_fits_stays_inside(tmp_path: Path) -> None:
    room = 103 - len(os.fsencode(tmp_path)) - len("//server.sock")
    assert at(tmp_path / ("x" * room)).socket.parent.parent == tmp_path
    assert at(tmp_path / ("x" * (room + 1))).socket.parent.parent != tmp_path


def test_new_directories_are_private(tmp_path: Path) -> None:
    instance = at(tmp_path / "a" / "b")
    old = os.umask(0)
    try:
        prepare(instance)
    finally:
        os.umask(old)
    assert mode(instance.dir) == 0o700


def test_an_empty_directory_of_ours_is_closed_to_others(tmp_path: Path) -> None:
    instance = at(tmp_path / "d")
    instance.dir.mkdir()
    instance.dir.chmod(0o755)
    prepare(instance)
    assert mode(instance.dir) == 0o700


def test_a_data_directory_that_was_opened_is_closed_again(tmp_path: Path) -> None:
    instance = at(tmp_path / "d")
    prepare(instance)
    instance.lock.touch()
    (instance.dir / "other").touch()
    instance.dir.chmod(0o777)
    prepare(instance)
    assert mode(instance.dir) == 0o700


def test_an_open_directory_with_other_contents_is_left_alone(tmp_path: Path) -> None:
    instance = at(tmp_path / "project")
    instance.dir.mkdir()
    instance.dir.chmod(0o755)
    (instance.dir / "main.c").touch()
    with pytest.raises(BadConfig, match="holds other files"):
        prepare(instance)
    assert mode(instance.dir) == 0o755


def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    theirs = Path("/usr")
    if os.getuid() == 0:
        theirs = tmp_path / "theirs"
        theirs.mkdir(mode=0o700)
        os.chown(theirs, 65534, 65534)
    with pytest.raises(BadConfig, match="belongs to user"):
        prepare(at(theirs))


def test_a_link_in_place_of_the_runtime_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir(mode=0o700)
    link = tmp_path / "mqctl-0"
    link.symlink_to("target")
    with pytest.raises(BadConfig, match="not a directory"):
        check_private(link)
    with pytest.raises(BadConfig, match="not a directory"):
        prepare(Instance("x", tmp_path / "d", link / "x.sock"))


@pytest.mark.parametrize("below", ["", "/d", "/d/e"])
def test_a_file_in_place_of_a_directory_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(BadConfig) as caught:
        prepare(at(Path(f"{tmp_path}/file{below}")))
    assert f"{tmp_path}/file{below}" in caught.value.message
    assert "irectory" in caught.value.message
    assert (tmp_path / "file").read_text() == "precious"
