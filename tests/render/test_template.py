import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.core.errors import BadUsage
from mqctl.core.message import DeadLetter, Death, Delivery, Message
from mqctl.render.notes import error_line
from mqctl.render.template import Item, compile_template


def message(payload: bytes = b"hello", key: bytes | None = b"k1") -> Message:
    headers = {"trace": "it's", "json": "j", "x-retry-group": "g"}
    stamp = "2023-11-14T22:13:20.000Z"
    return Message(
        "orders", 3, "5-0", payload, key, headers, stamp, 1_700_000_000_000, 2, 5
    )


MESSAGE = message()
DELIVERY = Delivery(MESSAGE, "billing", "c1", deliveries=1, attempt=4, limit=5)
DEAD = DeadLetter(MESSAGE, Death("poison", attempts=6), 5, None, True, "json")


def rendered(text: str, item: Item = DELIVERY) -> bytes:
    return compile_template(text).render(item)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("%t %p %o", b"orders 3 5-0"),
        ("%k=%s", b"k1=hello"),
        ("%S %K %T %a", b"5 2 1700000000000 4"),
        ("%g %c [%x]", b"billing c1 []"),
        ("%h", b'{"trace":"it\'s","json":"j"}'),
        ("%h{json}", b"j"),
        ("%h{trace}{q}", b"'it'\"'\"'s'"),
        ("%h{trace}{json}", b'"it\'s"'),
        ("%h{none}|%h{none}{json}", b"|null"),
        ("%h{x-retry-group}", b"g"),
        ("%s{json} %p{json} %g{json}", b'"hello" 3 "billing"'),
        ("%s{base64} %s{hex} %s{q}", b"aGVsbG8= 68656c6c6f hello"),
        ("100%% %%{json} {%p}", b"100% %{json} {3}"),
        (r"\n\t\r\0\\\x41\xff", b"\n\t\r\0\\A\xff"),
        ("é🙂\udcff", "é🙂".encode() + b"\xff"),
        ("", b""),
    ],
)
def test_each_token_stands_for_its_value(text: str, result: bytes) -> None:
    assert rendered(text) == result


def test_headers_as_json_stay_one_object() -> None:
    assert rendered("%h{json}{json}") == b'"j"'
    assert json.loads(rendered("%e{json}"))["headers"]["json"] == "j"


def test_the_envelope_has_no_newline() -> None:
    assert json.loads(rendered("%e"))["attempt"] == 4
    assert not rendered("%e").endswith(b"\n")
    assert json.loads(rendered("%e", DEAD))["dead"]["reason"] == "poison"


def test_a_message_in_nobodys_hands_has_no_group() -> None:
    assert rendered("%g|%c|%x|%a", MESSAGE) == b"|||3"
    assert rendered("%g{json}%c{json}%x{json}", MESSAGE) == b"nullnullnull"


def test_a_dead_letter_has_a_reason() -> None:
    assert rendered("%x %a [%g] [%c]", DEAD) == b"poison 6 [] []"


def test_no_key_has_length_minus_one() -> None:
    assert rendered("%k|%K|%k{json}", message(key=None)) == b"|-1|null"
    assert rendered("%k|%K|%k{json}", message(key=b"")) == b'|0|""'


def test_payload_bytes_are_untouched() -> None:
    raw = bytes(range(256))
    assert rendered("%s", message(raw)) == raw
    assert rendered("%s{hex}", message(raw)) == raw.hex().encode()


@given(st.binary().filter(lambda raw: b"\0" not in raw))
def test_a_quoted_payload_is_one_word_for_a_shell(raw: bytes) -> None:
    quoted = rendered("%s{q}", message(raw)).decode("utf-8", "surrogateescape")
    assert shlex.split(quoted) == [raw.decode("utf-8", "surrogateescape")]


@pytest.mark.parametrize(
    ("text", "what", "at"),
    [
        ("%t %z", "unknown token %z", 4),
        ("é %", "nothing after %", 3),
        ("a\\", "nothing after \\", 2),
        ("\\q", "unknown escape \\q", 1),
        ("\\x4", "unknown escape \\x", 1),
        ("%s{xml}", "unknown {xml} after %s", 3),
        ("%s{}", "unknown {} after %s", 3),
        ("%s{plain}", "unknown {plain} after %s", 3),
        ("%s{json", "brace not closed", 3),
        ("%h{name", "brace not closed", 3),
        ("a\x1b%\n", "unknown token %\n", 3),
    ],
)
def test_what_is_unknown_is_pointed_at(text: str, what: str, at: int) -> None:
    with pytest.raises(BadUsage) as caught:
        compile_template(text)
    assert caught.value.message == f"{what} in the format, at character {at}"
    shown, caret = str(caught.value.hint).split("\n")
    assert caret.strip() == "^"
    assert shown[caret.index("^")] in "%\\{"


def test_the_caret_stands_below_the_mistake_in_the_error() -> None:
    with pytest.raises(BadUsage) as caught:
        compile_template("%t %z")
    assert error_line(caught.value).split("\n")[1:] == ["hint: %t %z", "         ^"]
