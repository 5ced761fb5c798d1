"""Values of settings: checked, read from words, shown without passwords."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.config.values import Kind, check, has_password, masked, read
from mqctl.core.errors import BadConfig

TEXT, NUMBER, SWITCH, LIST = map(Kind, ("text", "number", "switch", "list"))
CHOICE = Kind("text", ("stop", "skip"))
GOOD: list[tuple[Kind, object, object]] = [
    (TEXT, "x", "x"),
    (TEXT, 2, "2"),
    (NUMBER, 5, 5),
    (SWITCH, True, True),
    (LIST, ["a=b"], ["a=b"]),
    (Kind("duration"), "1h30m", "1h30m"),
    (Kind("duration"), 0, "0"),
    (Kind("size"), "64KB", "64KB"),
    (Kind("rate"), "5/s", "5/s"),
    (CHOICE, "skip", "skip"),
]
BAD: list[tuple[Kind, object, str]] = [
    (TEXT, True, "it must be a text in quotes, not true"),
    (TEXT, ["a"], "it must be a text in quotes, not a table or list"),
    (NUMBER, "5", "it must be a whole number, not '5'"),
    (NUMBER, 5.0, "it must be a whole number, not 5.0"),
    (NUMBER, True, "it must be a whole number, not true"),
    (SWITCH, 1, "it must be true or false, not 1"),
    (LIST, "a", "it must be a list of texts, not 'a'"),
    (LIST, ["a", 1], "it must be a list of texts, not a table or list"),
    (Kind("duration"), "5", "it: a duration needs a unit: 5"),
    (Kind("duration"), 300, "it: a duration needs a unit: 300"),
    (Kind("size"), "5", "it: a size needs a unit: 5"),
    (Kind("rate"), "5", "it: a rate needs a unit: 5"),
    (CHOICE, "stopp", "it must be one of stop skip, not stopp"),
]
WORDS: list[tuple[Kind, list[str], object]] = [
    (NUMBER, ["-3"], -3),
    (SWITCH, ["Yes"], True),
    (SWITCH, ["0"], False),
    (LIST, ["a=1", "b=2"], ["a=1", "b=2"]),
    (TEXT, [""], ""),
    (CHOICE, ["skip"], "skip"),
    (Kind("duration"), ["5m"], "5m"),
]
BAD_WORDS = [
    (NUMBER, ["x"], "it must be a whole number, not x"),
    (NUMBER, ["1", "2"], "it takes one value, not 2"),
    (SWITCH, ["maybe"], "it must be true or false, not maybe"),
    (TEXT, ["\udcff"], "it: the value is not valid UTF-8"),
    (CHOICE, ["no"], "it must be one of stop skip, not no"),
]


@pytest.mark.parametrize(("kind", "value", "taken"), GOOD)
def test_a_value_of_its_kind_is_taken(kind: Kind, value: object, taken: object) -> None:
    found = check("it", kind, value)

    assert (found, type(found)) == (taken, type(taken))


@pytest.mark.parametrize(("kind", "value", "message"), BAD)
def test_a_value_of_another_kind_is_refused(
    kind: Kind, value: object, message: str
) -> None:
    with pytest.raises(BadConfig) as caught:
        check("it", kind, value)

    assert caught.value.message == message


@pytest.mark.parametrize(("kind", "words", "value"), WORDS)
def test_words_become_a_value_that_is_taken(
    kind: Kind, words: list[str], value: object
) -> None:
    found = read("it", kind, words)

    assert (found, type(found)) == (value, type(value))
    assert check("it", kind, found) == value


@pytest.mark.parametrize(("kind", "words", "message"), BAD_WORDS)
def test_words_that_are_no_value_are_refused(
    kind: Kind, words: list[str], message: str
) -> None:
    with pytest.raises(BadConfig) as caught:
        read("it", kind, words)

    assert caught.value.message == message


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:secret@host:1/0", "redis://:***@host:1/0"),
        ("rediss://me:secret@host", "rediss://me:***@host"),
        ("redis://a/b:secret@host", "redis://a/b:***@host"),
        ("redis://me:s@cr:t/x@host", "redis://me:***@host"),
        ("unix://:secret@/run/s?db=1", "unix://:***@/run/s?db=1"),
        ("redis://host?password=secret&x=1", "redis://host?password=***&x=1"),
    ],
)
def test_a_password_is_not_shown(url: str, shown: str) -> None:
    assert masked(url) == shown
    assert has_password(url)


@pytest.mark.parametrize(
    "url",
    ["local", "local:x", "redis://me@host:1", "redis+cluster://a:1,b:2", "unix:///a@b"],
)
def test_an_address_without_password_is_shown_as_it_is(url: str) -> None:
    assert masked(url) == url
    assert not has_password(url)


@given(st.text(min_size=1).map(lambda text: f"<{text}>"), st.sampled_from(["", "me"]))
def test_no_password_survives_whatever_its_characters(secret: str, user: str) -> None:
    assert secret not in masked(f"redis://{user}:{secret}@host:6379/0")
