import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.core.errors import BadData, NotFound, Refused
from mqctl.render.notes import (
    error_line,
    error_object,
    escape,
    escape_bytes,
    json_bytes,
    note,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\0\x7f\x9b", "\\x00\\x7f\\x9b"),
        ("a\u202eb\u2066c\u200f", "a\\u202eb\\u2066c\\u200f"),
        ("\u2028\ufeff", "\\u2028\\ufeff"),
        ("\udcff\ud83d", "\\xff\\ud83d"),
        ("grün 日本 🙂 [bold]x[/bold] :smile: \\", None),
        ("👩\u200d💻", None),
    ],
)
def test_only_what_disturbs_a_terminal_is_escaped(text: str, shown: str | None) -> None:
    assert escape(text) == (text if shown is None else shown)


@given(st.text())
def test_escaped_text_is_one_printable_line(text: str) -> None:
    shown = escape(text)
    assert len(shown.splitlines()) <= 1
    assert "\x1b" not in shown
    assert shown.encode().decode() == shown


def test_bytes_that_are_not_text_are_shown_as_bytes() -> None:
    assert escape_bytes(b"ok \xff\x1b \xc3\xa9") == "ok \\xff\\x1b é"


def test_an_error_is_one_line_with_its_facts_and_a_hint() -> None:
    error = BadData("not JSON", hint="mqctl help", line=500, file="in put")
    assert error_line(error) == (
        "mqctl: not JSON: line 500, file in put\nhint: mqctl help"
    )


def test_a_fact_the_message_names_is_not_repeated() -> None:
    assert error_line(NotFound("no topic orders", topic="orders")) == (
        "mqctl: no topic orders"
    )


def test_facts_of_every_type_are_readable() -> None:
    error = Refused(
        "no", groups=["a", "b"], ranges=[[1, 5], [7, 9]], resume_line=3, dry=True, at=[]
    )
    assert error_line(error) == (
        "mqctl: no: groups a,b, ranges 1-5,7-9, resume line 3, dry yes"
    )


def test_names_cannot_write_to_the_terminal() -> None:
    error = NotFound("no topic \x1b]0;x\x07", hint="a\x1bb", group="g\nh [/tmp/x]")
    assert error_line(error) == (
        "mqctl: no topic \\x1b]0;x\\x07: group g\\nh [/tmp/x]\nhint: a\\x1bb"
    )
    assert note("at \x1b") == "mqctl: at \\x1b"


def test_further_lines_of_a_hint_stay_aligned() -> None:
    line = error_line(BadData("no", hint="%t %z\n   ^"))
    assert line == "mqctl: no\nhint: %t %z\n         ^"


def test_an_error_for_programs_has_exactly_the_keys_promised() -> None:
    assert error_object(BadData("not\nJSON", line=5, group=None)) == (
        b'{"error":{"code":"bad_data","exit":65,"message":"not JSON","hint":null,'
        b'"facts":{"line":5}}}\n'
    )


def test_names_that_are_not_utf8_do_not_break_the_error() -> None:
    error = NotFound("no topic \udcff", topic="\udcff")
    assert error_object(error).isascii()
    assert json.loads(error_object(error))["error"]["facts"] == {"topic": "\udcff"}
    assert error_line(error) == "mqctl: no topic \\xff"


def test_numbers_of_any_size_are_json() -> None:
    assert json_bytes({"a": 2**70}) == b'{"a":%d}' % 2**70
    assert json.loads(json_bytes({"a": 2**70}, indent=True)) == {"a": 2**70}
