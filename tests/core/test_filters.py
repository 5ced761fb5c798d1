"""Which messages a filter takes."""

import pytest

from mqctl.core.errors import BadUsage
from mqctl.core.filters import like, make_filter
from mqctl.core.message import Message


def message(payload: bytes = b"", key: bytes | None = None, **headers: str) -> Message:
    return Message("t", 0, "1-0", payload, key, headers, "", 0)


def test_without_conditions_everything_is_taken() -> None:
    empty = make_filter(None)
    assert not empty
    assert empty.takes(message())


def test_a_key_matches_as_a_whole_and_in_its_own_case() -> None:
    wanted = make_filter("order-*")
    assert wanted
    assert wanted.takes(message(key=b"order-1"))
    assert wanted.takes(message(key=b"order-\xff"))
    assert not wanted.takes(message(key=b"my order-1"))
    assert not wanted.takes(message(key=b"Order-1"))


def test_no_key_is_not_an_empty_key() -> None:
    assert make_filter("*").takes(message(key=b""))
    assert not make_filter("*").takes(message(key=None))


def test_every_condition_must_hold() -> None:
    wanted = make_filter("k", ["a=1*", "b=*"], "x+")
    assert wanted.takes(message(b"axxb", b"k", a="12", b=""))
    assert not wanted.takes(message(b"axxb", b"k", a="12"))
    assert not wanted.takes(message(b"axxb", b"k", a="21", b=""))
    assert not wanted.takes(message(b"ab", b"k", a="12", b=""))


def test_payloads_that_are_not_text_are_searched_too() -> None:
    assert make_filter(None, grep="b$").takes(message(b"\xff\x00b"))


@pytest.mark.parametrize("header", ["tag", "=x", ""])
def test_a_header_pattern_needs_a_name_and_an_equals_sign(header: str) -> None:
    with pytest.raises(BadUsage, match="header"):
        make_filter(None, [header])


def test_what_is_no_regular_expression_is_refused() -> None:
    with pytest.raises(BadUsage, match="regular expression"):
        make_filter(None, grep="(")


def test_a_reason_matches_as_a_whole_in_any_case() -> None:
    assert like("Payload-Missing", "payload-*")
    assert not like("payload-missing", "missing")
