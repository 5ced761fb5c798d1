import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.core.errors import BadData
from mqctl.core.message import Delivery, Message
from mqctl.handlers.environment import arguments, encoded, inheritable, variables

MESSAGE = Message("orders", 3, "17-4", b"body", b"k", {}, "", 1_767_323_045_678)
DELIVERY = Delivery(MESSAGE, "billing", "consumer-1", 1, attempt=2, limit=5)


def with_message(**changes: Any) -> Delivery:
    return replace(DELIVERY, message=replace(MESSAGE, **changes))


def with_headers(**headers: str) -> Delivery:
    return with_message(headers=headers)


def test_every_placeholder_is_replaced_wherever_it_stands() -> None:
    template = [b"cmd", b"{topic}/{partition}", b"--id={id}", b"{key}{group}{attempt}"]
    assert arguments(template, DELIVERY) == [
        b"cmd",
        b"orders/3",
        b"--id=17-4",
        b"kbilling2",
    ]


def test_other_braces_stay() -> None:
    template = [b"cmd", b"{}", b"{payload}", b"{ key }", b"{KEY}", b"{{key}}", b"{key"]
    assert arguments(template, DELIVERY) == [*template[:5], b"{k}", b"{key"]


def test_the_program_name_is_not_chosen_by_data() -> None:
    assert arguments([b"{key}", b"{key}"], DELIVERY) == [b"{key}", b"k"]


def test_a_message_without_key_has_an_empty_placeholder() -> None:
    assert arguments([b"cmd", b"<{key}>"], with_message(key=None)) == [b"cmd", b"<>"]


@given(st.binary())
def test_what_was_put_in_is_never_looked_at_again(key: bytes) -> None:
    for hostile in (key, b"{topic}" + key, b"{key}", key + b"\\1\\g<0>"):
        found = arguments([b"cmd", b"<{key}{id}>"], with_message(key=hostile))
        assert found == [b"cmd", b"<" + hostile + b"17-4>"]


def test_the_variables_are_those_documented() -> None:
    assert variables(with_headers(tenant="a b")) == {
        b"MQ_TOPIC": b"orders",
        b"MQ_PARTITION": b"3",
        b"MQ_ID": b"17-4",
        b"MQ_ORIGINAL_ID": b"17-4",
        b"MQ_KEY": b"k",
        b"MQ_GROUP": b"billing",
        b"MQ_CONSUMER": b"consumer-1",
        b"MQ_ATTEMPT": b"2",
        b"MQ_MAX_ATTEMPTS": b"6",
        b"MQ_TIMESTAMP_MS": b"1767323045678",
        b"MQ_HEADERS": b'{"tenant":"a b"}',
        b"MQ_HEADER_TENANT": b"a b",
    }


def test_the_original_id_stays_over_retries() -> None:
    found = variables(with_message(headers={"x-original-message-id": "9-1"}))
    assert (found[b"MQ_ID"], found[b"MQ_ORIGINAL_ID"]) == (b"17-4", b"9-1")


def test_transport_headers_are_not_told() -> None:
    headers = {"x-retry-group": "g", "x-dead-reason": "r", "x-payload-hash-ref": "p"}
    found = variables(with_message(headers={**headers, "x-mine": "1"}))
    assert [name for name in found if name.startswith(b"MQ_HEADER_")] == [
        b"MQ_HEADER_X_MINE"
    ]
    assert found[b"MQ_HEADERS"] == b'{"x-mine":"1"}'


def test_an_absent_key_and_an_empty_one_differ() -> None:
    assert b"MQ_KEY" not in variables(with_message(key=None))
    assert variables(with_message(key=b""))[b"MQ_KEY"] == b""


def test_of_headers_with_one_variable_name_the_later_wins() -> None:
    headers = {"trace-id": "1", "trace.id": "2", "Trace_Id": "3"}
    found = variables(with_message(headers=headers))
    assert found[b"MQ_HEADER_TRACE_ID"] == b"3"
    assert json.loads(found[b"MQ_HEADERS"]) == headers


@given(st.dictionaries(st.text(), st.text(st.characters(exclude_characters="\0"))))
def test_any_headers_make_valid_variables_and_come_back_from_json(
    headers: dict[str, str],
) -> None:
    found = variables(with_message(headers=headers))
    assert all(n.replace(b"_", b"").isalnum() and n.isupper() for n in found)
    told = json.loads(found[b"MQ_HEADERS"])
    assert told.items() <= headers.items()


@pytest.mark.parametrize("changes", [{"key": b"a\0"}, {"headers": {"h": "a\0"}}])
def test_a_nul_byte_is_the_messages_fault(changes: dict[str, Any]) -> None:
    with pytest.raises(BadData, match="NUL"):
        variables(with_message(**changes))


def test_a_nul_byte_in_a_header_name_becomes_an_underscore() -> None:
    assert variables(with_message(headers={"a\0b": "1"}))[b"MQ_HEADER_A_B"] == b"1"


def test_an_outer_handlers_message_does_not_show_through() -> None:
    outer = {b"MQ_KEY": b"1", b"MQ_HEADER_A": b"2", b"MQ_HOME": b"3", b"PATH": b"4"}
    assert inheritable(outer) == {b"MQ_HOME": b"3", b"PATH": b"4"}


@pytest.mark.parametrize(
    ("text", "raw"),
    [("Zoë", "Zoë".encode()), ("\udcff", b"\xff"), ("\ud83d!", b"?!")],
)
def test_text_with_lone_surrogates_can_be_passed_on(text: str, raw: bytes) -> None:
    assert encoded(text) == raw
