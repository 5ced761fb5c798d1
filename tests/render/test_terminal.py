import pytest

from mqctl.render.terminal import Terminal, When, terminal


@pytest.mark.parametrize(
    ("env", "isatty", "when", "color"),
    [
        ({}, True, "auto", True),
        ({}, False, "auto", False),
        ({"NO_COLOR": "1"}, True, "auto", False),
        ({"NO_COLOR": ""}, True, "auto", True),
        ({"FORCE_COLOR": "1"}, False, "auto", True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, "auto", False),
        ({"TERM": "dumb"}, True, "auto", False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, "auto", True),
        ({"TERM": "xterm"}, True, "auto", True),
        ({"NO_COLOR": "1"}, False, "always", True),
        ({"FORCE_COLOR": "1"}, True, "never", False),
    ],
)
def test_colour_is_decided_by_the_first_that_speaks(
    env: dict[str, str], isatty: bool, when: When, color: bool
) -> None:
    assert terminal(env, isatty=isatty, when=when).color is color


@pytest.mark.parametrize(
    ("env", "columns", "width"),
    [
        ({"COLUMNS": "40"}, 120, 40),
        ({"COLUMNS": "x"}, 120, 120),
        ({"COLUMNS": "0"}, None, 80),
        ({"COLUMNS": "9" * 5000}, None, 80),
        ({}, 120, 120),
        ({}, 0, 80),
        ({}, None, 80),
    ],
)
def test_a_terminal_has_a_width(
    env: dict[str, str], columns: int | None, width: int
) -> None:
    assert terminal(env, isatty=True, columns=columns).width == width


def test_what_is_no_terminal_has_none() -> None:
    found = terminal({"COLUMNS": "40"}, isatty=False, columns=40)
    assert found == Terminal(None, color=False)
