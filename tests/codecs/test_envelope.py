import base64
import json
from dataclasses import replace

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mqctl.codecs.envelope import (
    decode,
    encode_dead,
    encode_deliveries,
    encode_delivery,
    encode_message,
)
from mqctl.core.errors import BadData
from mqctl.core.message import DeadLetter, Death, Delivery, Message, Outgoing
from mqctl.core.receipts import parse_receipt

MESSAGE = Message(
    topic="orders",
    partition=3,
    id="1700000000000-0",
    payload=b"hello",
    key=b"user:1",
    headers={},
    timestamp="2023-11-14T22:13:20.000Z",
    ts_ms=1_700_000_000_000,
    max_retries=3,
)
DELIVERY = Delivery(MESSAGE, "billing", "consumer-1", deliveries=2, attempt=4, limit=3)
HEAD = (
    b'{"topic":"orders","partition":3,"id":"1700000000000-0",'
    b'"timestamp":"2023-11-14T22:13:20.000Z","ts_ms":1700000000000,'
)

texts = st.text(st.characters(exclude_categories=["Cs"]))
keys = st.none() | st.binary(max_size=8) | texts.map(str.encode)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=6,
)
spaces = st.text(" \t\r\n", max_size=2)
json_texts = st.builds(
    lambda before, value, after: (before + json.dumps(value) + after).encode(),
    spaces,
    json_values,
    spaces,
)
payloads = st.binary() | texts.map(str.encode) | json_texts
names = texts.filter(lambda name: not name.startswith(("x-", "partitionId")))
header_maps = st.dictionaries(names | st.just("tag"), texts, max_size=4)


def line(**fields: object) -> bytes:
    return json.dumps(fields).encode()


# Writing


def test_a_delivery_is_one_line_in_the_fixed_order() -> None:
    assert encode_delivery(DELIVERY) == HEAD + (
        b'"key":"user:1","headers":{},"attempt":4,"max_retries":3,"payload":"hello"}\n'
    )


def test_a_delivery_to_be_settled_later_carries_its_receipt() -> None:
    encoded = encode_delivery(DELIVERY, receipt=True)
    assert encoded == HEAD + (
        b'"key":"user:1","headers":{},"attempt":4,"max_retries":3,"deliveries":2,'
        b'"group":"billing","consumer":"consumer-1","receipt":'
        b'"r1:orders:3:1700000000000-0:billing:consumer-1:2","payload":"hello"}\n'
    )
    receipt = parse_receipt(json.loads(encoded)["receipt"])
    assert (receipt.consumer, receipt.deliveries) == ("consumer-1", 2)


def test_a_worker_gets_a_sequence_number() -> None:
    assert b'"max_retries":3,"seq":17,"payload"' in encode_delivery(DELIVERY, seq=17)


def test_everything_that_applies_stands_between_the_head_and_the_payload() -> None:
    message = replace(
        MESSAGE,
        key=b"\xff",
        payload=b"\x00\xff",
        retry_count=2,
        max_retries=None,
        timestamp="2023-11-14T22:13:20Z",
        headers={
            "trace": "é",
            "x-original-message-id": "1-0",
            "x-replay-count": "2",
            "x-payload-hash-ref": "r",
            "x-dead-reason": "r",
            "x-force-partition-id": "1",
            "x-retry-group": "g",
            "x-original-timestamp": "t",
            "partitionId": "1",
            "tag": "paid",
        },
    )
    assert (
        encode_message(message)
        == HEAD
        + (
            '"key":null,"headers":{"trace":"é","tag":"paid"},"attempt":3,'
            '"max_retries":null,"key_b64":"/w==","original_id":"1-0","replay_count":2,'
            '"tag":"paid","payload_b64":"AP8="}\n'
        ).encode()
    )


def test_a_dead_letter_says_why() -> None:
    death = Death("retries-exhausted", "exit 1", "billing", "c", 6, 1, stderr="no\n")
    dead = DeadLetter(MESSAGE, death, 1_700_000_000_000, "5-0", True, "kryo5")
    assert encode_dead(dead) == HEAD + (
        b'"key":"user:1","headers":{},"attempt":6,"max_retries":3,"dead":{'
        b'"reason":"retries-exhausted","detail":"exit 1","group":"billing",'
        b'"consumer":"c","attempts":6,"exit_code":1,"signal":null,"stderr":"no\\n",'
        b'"failed_at":"2023-11-14T22:13:20.000Z","failed_at_ms":1700000000000,'
        b'"last_id":"5-0","partition_known":true},"payload":"hello"}\n'
    )


def test_what_a_dead_letter_does_not_know_is_null() -> None:
    dead = DeadLetter(MESSAGE, Death("unknown"), 0, None, False, "json")
    record = json.loads(encode_dead(dead))["dead"]
    assert [record[name] for name in ("group", "consumer", "last_id")] == [None] * 3


def test_no_key_and_an_empty_key_differ() -> None:
    assert b'"key":null' in encode_message(replace(MESSAGE, key=None))
    assert b'"key":""' in encode_message(replace(MESSAGE, key=b""))


def test_a_batch_is_its_lines() -> None:
    assert encode_deliveries([DELIVERY, DELIVERY]) == encode_delivery(DELIVERY) * 2
    assert encode_deliveries([]) == b""


def test_a_json_payload_stands_verbatim_and_last() -> None:
    raw = b' {"a": 1.0, "a":2e40, "\\u0041":[ ]}\r '
    encoded = encode_message(replace(MESSAGE, payload=raw), json_payload=True)
    assert encoded.endswith(b'"max_retries":3,"payload_json":' + raw + b"}\n")


@pytest.mark.parametrize(
    "payload",
    [b"", b"x", b"1,2", b"1],[2", b"[1", b'{"a":\n1}', b'"\xff"', b"NaN", b"{}}", b"{"],
)
def test_what_is_no_json_in_one_line_stays_text_or_bytes(payload: bytes) -> None:
    encoded = encode_message(replace(MESSAGE, payload=payload), json_payload=True)
    assert b"payload_json" not in encoded
    assert decode(encoded, 1).payload == payload


@pytest.mark.parametrize("depth", [1022, 1023, 1024, 1025])
def test_a_deep_payload_can_be_read_back(depth: int) -> None:
    payload = b"[" * depth + b"]" * depth
    encoded = encode_message(replace(MESSAGE, payload=payload), json_payload=True)
    assert decode(encoded, 1).payload == payload


def test_a_number_over_64_bits_is_written_exactly() -> None:
    message = replace(MESSAGE, headers={"x-replay-count": "9" * 30})
    assert json.loads(encode_message(message))["replay_count"] == int("9" * 30)


def test_a_lone_surrogate_is_refused_with_the_place() -> None:
    message = replace(MESSAGE, headers={"a": "\ud83d"})
    with pytest.raises(BadData, match="surrogate") as caught:
        encode_message(message)
    assert caught.value.facts == {"topic": "orders", "id": MESSAGE.id}


# The law


@given(keys, header_maps, payloads, st.booleans())
@example(None, {}, b"", True)
@example(b"", {"tag": ""}, b"\x00\xff\n", False)
@example("🙂".encode(), {"": "🙂\n"}, "🙂\r\n\u2028".encode(), True)
@example(b"k", {"a": ',"payload_json":1}'}, b'{"x":1,"payload_json":2}', True)
def test_key_headers_and_payload_survive_for_any_bytes(
    key: bytes | None, headers: dict[str, str], payload: bytes, json_payload: bool
) -> None:
    message = replace(MESSAGE, key=key, headers=headers, payload=payload)
    encoded = encode_message(message, json_payload=json_payload)
    assert encoded.count(b"\n") == 1
    got = decode(encoded, 7)
    assert (got.key, got.headers, got.payload) == (key, headers, payload)
    assert (got.partition, got.max_retries, got.line) == (3, 3, 7)
    orjson.loads(encoded)  # and the line is JSON to others


@given(st.binary())
def test_no_line_breaks_the_reader(raw: bytes) -> None:
    try:
        got = decode(raw, 1)
    except BadData as error:
        assert error.facts["line"] == 1  # noqa: PT017 - either way is right
    else:
        assert isinstance(orjson.loads(raw), dict)
        assert isinstance(got, Outgoing)


# Reading


def test_an_empty_object_is_an_empty_message() -> None:
    assert decode(b"{}\n", 1) == Outgoing(b"", line=1)


def test_what_belongs_to_the_old_message_is_left_behind() -> None:
    headers = {"a": "1", "x-retry-group": "g", "x-dead-reason": "r", "partitionId": "2"}
    raw = line(
        topic="t", id=5, timestamp=[], attempt={}, dead=1, new=2, headers=headers
    )
    assert decode(raw, 1) == Outgoing(b"", headers={"a": "1"}, line=1)


def test_a_receipt_passes_through() -> None:
    assert decode(line(receipt="r1:x"), 1).receipt == "r1:x"


def test_a_tag_becomes_the_header() -> None:
    assert decode(line(tag="new", headers={"tag": "old"}), 1).headers == {"tag": "new"}


@pytest.mark.parametrize("partition", [None, "3", 1.5, True, []])
def test_a_partition_that_is_no_whole_number_is_none(partition: object) -> None:
    assert decode(line(partition=partition), 1).partition is None


@pytest.mark.parametrize(
    ("raw", "payload"),
    [
        (b'{"payload_json":{"b": [1,2]} ,"key":"a,}"}', b'{"b": [1,2]} '),
        (b'{"payload_json":1}', b"1"),
        (b'{"payload_json" : "x" } \r\n', b' "x" '),
        (b'{"a":"\\"payload_json\\":9","payload_json":null}', b"null"),
        (b'{"headers":{"x\\",\\"payload_json\\":":"1"},"payload_json":2}', b"2"),
        (b'{"dead":{"k":1,"payload_json":1},"payload_json":3,"z":[4]}', b"3"),
        (b'{"dead":{"k":1,"payload_json":1},"payload_json":3}', b"3"),
        (b'{"payload\\u005fjson":4}', b"4"),
        (b'{"x":[{"payload_json":5}],"payload_json":"a\\\\"}', b'"a\\\\"'),
    ],
)
def test_payload_json_is_taken_byte_for_byte_wherever_it_stands(
    raw: bytes, payload: bytes
) -> None:
    assert decode(raw, 1).payload == payload


def test_payload_json_inside_another_field_is_not_the_payload() -> None:
    assert decode(b'{"dead":{"k":1,"payload_json":1}}', 1).payload == b""
    assert decode(b'{"a":",\\"payload_json\\":1"}', 1).payload == b""


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "not JSON: .* \\(byte 1\\)"),
        (b'{"a":}', "not JSON: .* \\(byte 6\\)"),
        (b'{"key":"\xff"}', "not JSON: .*UTF-8"),
        (b'{"payload":"\\ud800"}', "not JSON: .*surrogate"),
        (b'{,"payload_json":1}', "not JSON"),
        (b'{"a":1,"payload_json":}', "not JSON"),
        (b'{"a":1,"payload_json":1}}', "not JSON"),
        (b'{"a":1,"payload_json":1} x', "not JSON"),
        (b'[{"a":1,"payload_json":1}]', "not an object but an array"),
        (b"[]", "not an object but an array"),
        (b"null", "not an object but null"),
        (line(key=5), "key must be a string or null, not a number"),
        (line(key="a", key_b64="YQ=="), "more than one key: key and key_b64"),
        (line(key_b64="?"), "key_b64 is not base64"),
        (line(key_b64="é"), "key_b64 is not base64"),
        (line(headers=[]), "headers must be an object, not an array"),
        (line(headers={"a": None}), "header a must be a string, not null"),
        (line(headers={"a": True}), "header a must be a string, not true or false"),
        (line(tag=1), "tag must be a string or null, not a number"),
        (line(receipt=1), "receipt must be a string or null, not a number"),
        (line(max_retries=-1), "max_retries must be 0 to 2147483647, not -1"),
        (line(max_retries=2**31), "max_retries must be 0 to"),
        (line(max_retries=True), "max_retries must be a whole number, not true"),
        (line(max_retries="3"), "max_retries must be a whole number, not a string"),
        (line(payload=None), "payload must be a string, not null"),
        (line(payload={"a": 1}), "payload must be a string, not an object"),
        (line(payload_b64="a"), "payload_b64 is not base64"),
        (line(payload="", payload_b64=""), "payload and payload_b64"),
        (line(payload="", payload_json=1), "payload and payload_json"),
        (line(payload_json=1, payload_b64=""), "payload_b64 and payload_json"),
        (b'{"payload_json":1,"payload_json":2}', "payload_json is given twice"),
        (b'{"payload_json":1,"a":2,"payload_json":3}', "payload_json is given twice"),
    ],
)
def test_a_bad_line_is_refused_with_its_number_and_the_reason(
    raw: bytes, message: str
) -> None:
    with pytest.raises(BadData, match=message) as caught:
        decode(raw, 500)
    assert caught.value.facts == {"line": 500}


def test_an_object_as_payload_gets_the_right_field_as_a_hint() -> None:
    with pytest.raises(BadData) as caught:
        decode(line(payload={}), 1)
    assert caught.value.hint == "give JSON as payload_json"


def test_base64_is_read_as_bytes() -> None:
    text = base64.b64encode(bytes(range(256))).decode()
    got = decode(line(payload_b64=text, key=None, key_b64=text), 1)
    assert got.payload == got.key == bytes(range(256))
