"""What must hold of the package as a whole."""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import mqctl
from mqctl.core import errors
from mqctl.core.keys import KeySpace

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "mqctl"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# The contract of scripts and programs: code, exit status.
CODES = {
    "usage": 2,
    "bad_value": 2,
    "partial": 3,
    "not_found": 4,
    "empty": 5,
    "refused": 6,
    "name_in_use": 6,
    "active": 6,
    "bad_data": 65,
    "too_large": 65,
    "no_input": 66,
    "unreachable": 69,
    "loading": 69,
    "cluster_down": 69,
    "internal": 70,
    "output": 74,
    "not_durable": 75,
    "timeout": 75,
    "unknown_outcome": 75,
    "auth": 77,
    "denied": 77,
    "read_only": 77,
    "config": 78,
    "handler": 78,
    "unsupported_server": 78,
    "wrong_type": 1,
    "out_of_memory": 1,
    "lost_lease": 1,
    "failed": 1,
    "interrupted": 130,
}
# They say the same as their parent, with more facts.
UNNAMED = frozenset({"Undecodable", "ConnectionLost", "GroupDeleted"})


def subclasses(kind: type) -> list[type]:
    found = [kind]
    for child in kind.__subclasses__():
        found += subclasses(child)
    return found


def every_error() -> list[type[errors.MqError]]:
    for module in pkgutil.walk_packages(mqctl.__path__, "mqctl."):
        if module.name != "mqctl.__main__":
            importlib.import_module(module.name)
    return [
        kind for kind in subclasses(errors.MqError) if kind.__module__[:5] == "mqctl"
    ]


def test_every_error_has_the_code_and_exit_of_the_contract() -> None:
    for kind in every_error():
        assert CODES[kind.code] == kind.exit, kind


def test_no_two_errors_share_a_code() -> None:
    named = [kind for kind in every_error() if kind.__name__ not in UNNAMED]

    codes = [kind.code for kind in named]
    assert sorted(codes) == sorted(set(codes))


def test_every_code_of_the_contract_has_its_error() -> None:
    assert {kind.code for kind in every_error()} == set(CODES) - {"internal"}


def test_the_tree_at_the_top_of_the_errors_names_them_all() -> None:
    drawn = errors.__doc__ or ""
    own = [kind for kind in every_error() if kind.__module__ == errors.__name__]

    for kind in own:
        if kind.__name__ not in UNNAMED | {"Interrupted"}:
            assert re.search(rf"\b{kind.__name__}\b", drawn), kind


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_says_what_it_is(path: Path) -> None:
    said = ast.get_docstring(ast.parse(path.read_text()))

    assert said
    assert said.splitlines()[0].endswith((".", "`", "!"))


def test_key_names_are_spelled_in_one_place() -> None:
    spelled = [
        str(path.relative_to(PACKAGE))
        for path in (*SOURCES, *PACKAGE.rglob("*.lua"))
        if re.search(r"streaming:mq|stream:topic", path.read_text())
    ]

    assert spelled == ["core/keys.py"]
    assert KeySpace() == KeySpace("streaming:mq", "stream:topic")


def test_every_script_has_a_header_and_one_caller() -> None:
    callers = (PACKAGE / "store" / "scripts.py").read_text()
    for path in (PACKAGE / "store" / "lua").glob("*.lua"):
        assert path.read_text().startswith("--"), path.name
        assert callers.count(f'"{path.stem}"') == 1, path.name


def test_only_the_clock_reads_the_time_of_day() -> None:
    for path in SOURCES:
        if path.name != "clock.py":
            assert "time.time(" not in path.read_text(), path


def test_the_wheel_holds_every_script_and_no_test(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )

    (wheel,) = tmp_path.glob("mqctl-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        str(path.relative_to(ROOT))
        for path in PACKAGE.rglob("*")
        if path.suffix in {".py", ".lua"}
    } <= names
    assert not [name for name in names if name.startswith(("tests", "man"))]
