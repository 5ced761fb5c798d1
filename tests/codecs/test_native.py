import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.codecs import kryo, native
from mqctl.core import headers as h
from mqctl.core.errors import Undecodable
from mqctl.core.message import Message
from tests.support import golden

STORAGE = {h.PAYLOAD_SIZE, h.PAYLOAD_STORAGE, h.PAYLOAD_REF}


def case(value: Any) -> str:
    name, expectation = value
    return f"{name}-{expectation.get('id') or expectation.get('item', '')[-12:]}"


def read(name: str, expectation: Any) -> Message:
    entries = golden.entries(golden.load(name))
    return native.decode(
        expectation["topic"],
        expectation["partition"],
        expectation["id"],
        entries[expectation["stream"], expectation["id"]],
    )


def fields(flat: list[bytes]) -> dict[str, bytes]:
    names = [name.decode() for name in flat[::2]]
    assert len(set(names)) == len(names)
    return dict(zip(names, flat[1::2], strict=True))


def application(headers: dict[str, str]) -> dict[str, str]:
    """What the application set: of the transport headers, one it may set itself."""
    forced = {k: v for k, v in headers.items() if k == h.FORCE_PARTITION}
    return h.application(headers) | forced


MESSAGES = golden.expected("messages")
REPLAYED = golden.expected("replayed")


@pytest.mark.parametrize("recorded", MESSAGES + REPLAYED, ids=case)
def test_reads_every_recorded_message(recorded: Any) -> None:
    name, expectation = recorded
    found = read(name, expectation)
    assert found.key == golden.key(expectation) or (
        found.key is None and expectation["key"] == {"text": ""}
    )
    assert found.retry_count == expectation["retry_count"]
    assert found.max_retries == expectation["max_retries"]
    assert found.timestamp == expectation["timestamp"]
    assert found.original_id == (expectation["original_id"] or found.id)
    assert found.payload_ref == expectation.get("payload_ref")
    check_headers(found, expectation)


def check_headers(found: Message, expectation: Any) -> None:
    own = application(found.headers)
    right = golden.headers(expectation)
    if right.get(h.PARTITION):  # set by the application, named like a transport one
        assert found.headers[h.PARTITION] == right[h.PARTITION]
        own[h.PARTITION] = right[h.PARTITION]
    if "replay_of" in expectation and h.FORCE_PARTITION not in right:
        own.pop(h.FORCE_PARTITION, None)
    golden.check_headers(own, expectation)


@pytest.mark.parametrize("recorded", MESSAGES + REPLAYED, ids=case)
def test_hands_out_the_body_as_its_producer_gave_it(recorded: Any) -> None:
    name, expectation = recorded
    found = read(name, expectation)
    stored = golden.strings(golden.load(name))
    assert (found.payload_ref not in stored) == (
        found.payload_ref is None or expectation.get("payload_missing", False)
    )
    if found.payload_ref in stored:
        assert found.payload == b""
        found = native.with_body(found, stored[found.payload_ref])
        assert found.payload_ref is None
        assert not found.headers.keys() & STORAGE
    golden.check_payload(found.payload, expectation)


PRODUCED = [(n, e) for n, e in MESSAGES if n.startswith("produce_")]


@pytest.mark.parametrize("recorded", PRODUCED, ids=case)
def test_writes_the_entry_that_the_java_producer_writes(recorded: Any) -> None:
    name, expectation = recorded
    recording = golden.load(name)
    flat = golden.entries(recording)[expectation["stream"], expectation["id"]]
    body = expectation["payload"]
    facts: dict[str, Any] = {
        "topic": expectation["topic"],
        "partition": expectation["partition"],
        "payload": golden.form(body) if body else b"",
        "key": golden.key(expectation),
        # a reference left over from another message must not get in
        "headers": golden.headers(expectation) | {h.PAYLOAD_REF: "stale"},
        "timestamp": expectation["timestamp"],
        "retry_count": 0,
        "max_retries": expectation["max_retries"],
    }
    ref = expectation.get("payload_ref")
    if ref:
        ours = fields(native.aside_fields(ref=ref, **facts))
    else:
        ours = fields(native.entry_fields(**facts))
    java = fields(flat)
    our_headers = json.loads(ours.pop("headers"))
    java_headers = json.loads(java.pop("headers"))
    assert ours == java
    if expectation["payload_kind"] != "string":  # to us every body is a text
        del our_headers[h.PAYLOAD_SIZE], java_headers[h.PAYLOAD_SIZE]
    if not ref:
        java_headers.pop(h.PAYLOAD_REF, None)
    assert our_headers == {k: v for k, v in java_headers.items() if v is not None}


@pytest.mark.parametrize("recorded", PRODUCED, ids=case)
def test_stores_a_text_aside_when_and_as_java_does(recorded: Any) -> None:
    name, expectation = recorded
    if expectation["payload_kind"] != "string":
        return
    payload = golden.form(expectation["payload"])
    ref = expectation.get("payload_ref")
    assert (native.stored_size(payload) > native.INLINE_LIMIT) == bool(ref)
    if ref:
        text = native.aside_text(payload)
        assert text == (golden.strings(golden.load(name))[ref], False)


RETRIES = golden.expected("retries")


@pytest.mark.parametrize("recorded", RETRIES, ids=case)
def test_reads_every_recorded_retry_item(recorded: Any) -> None:
    name, expectation = recorded
    item = expectation["item"]
    flat = golden.hashes(golden.load(name))[item]
    found = native.decode_item(item, expectation["due_ms"], flat)
    assert (found.item, found.due_ms) == (item, expectation["due_ms"])
    assert found.topic == expectation["topic"]
    assert found.partition == expectation["partition"]
    assert found.key == (golden.key(expectation) or None)
    assert found.retry_count == expectation["retry_count"]
    assert found.max_retries == expectation["max_retries"]
    assert found.original_id == expectation["original_id"]
    golden.check_headers(application(found.headers), expectation)
    golden.check_payload(found.payload, expectation)


@pytest.mark.parametrize("recorded", RETRIES, ids=case)
def test_a_moved_item_is_the_message_again(recorded: Any) -> None:
    name, expectation = recorded
    flat = golden.hashes(golden.load(name))[expectation["item"]]
    moved = native.moved_fields(flat, "2026-01-01T00:00:00Z")
    found = native.decode(expectation["topic"], expectation["partition"], "5-0", moved)
    assert found.timestamp == "2026-01-01T00:00:00Z"
    assert found.key == (golden.key(expectation) or None)
    assert found.original_id == expectation["original_id"]
    assert found.retry_count == expectation["retry_count"]
    golden.check_payload(found.payload, expectation)


def test_an_empty_item_moves_with_the_defaults_of_the_java_mover() -> None:
    assert native.moved_fields([b"topic", b"t", b"key", b""], "T") == [
        *(b"payload", b"", b"timestamp", b"T", b"retryCount", b"0"),
        *(b"maxRetries", b"0", b"topic", b"t", b"partitionId", b"0"),
    ]


@pytest.mark.parametrize("name", golden.names())
def test_reads_every_recorded_commit(name: str) -> None:
    recording = golden.load(name)
    hashes = golden.hashes(recording)
    for expectation in recording["expect"].get("commits", []):
        suffix = f":commit:{expectation['topic']}:p:{expectation['partition']}"
        (flat,) = [flat for key, flat in hashes.items() if key.endswith(suffix)]
        pairs = list(zip(flat[::2], flat[1::2], strict=True))
        found = [native.commit_entry(field, value) for field, value in pairs]
        assert (expectation["group"], expectation["id"]) in found
        assert native.commit_codec(pairs[0][0]) == recording["codec"]


def test_a_commit_entry_that_names_no_id_is_none() -> None:
    assert native.commit_entry(b"g", b"yesterday") is None
    assert native.commit_entry(b"\x03g\xb1", b"5-1") == ("g1", "5-1")


RAW_MESSAGE = Message(
    topic="t",
    partition=2,
    id="7-1",
    payload=b"",
    key=None,
    headers={},
    timestamp="2026-01-01T00:00:00.000Z",
    ts_ms=1767225600000,
    max_retries=3,
)
texts = st.text() | st.text(alphabet='"\\\0\n😀é', max_size=9)
bodies = st.binary() | texts.map(str.encode)
app_headers = st.dictionaries(texts.map("a{}".format), texts)
messages = st.builds(
    replace,
    st.just(RAW_MESSAGE),
    payload=bodies,
    key=st.none() | bodies,
    headers=app_headers,
    retry_count=st.integers(0, 5),
    max_retries=st.integers(0, 9),
)


def written(message: Message) -> list[bytes]:
    return native.entry_fields(
        topic=message.topic,
        partition=message.partition,
        payload=message.payload,
        key=message.key,
        headers=message.headers,
        timestamp=message.timestamp,
        retry_count=message.retry_count,
        max_retries=message.max_retries or 0,
    )


def plain(message: Message) -> Message:
    return replace(message, headers=h.application(message.headers))


@given(messages)
def test_a_written_message_is_read_back(message: Message) -> None:
    found = native.decode("t", 2, "7-1", written(message))
    assert plain(found) == message


@given(messages)
def test_a_message_read_and_written_again_is_the_same(message: Message) -> None:
    found = native.decode("t", 2, "7-1", written(message))
    again = native.decode("t", 2, "7-1", written(found))
    assert again == found


@given(messages)
def test_a_body_stored_aside_is_read_back(message: Message) -> None:
    flat = native.aside_fields(
        topic="t",
        partition=2,
        payload=message.payload,
        ref="streaming:mq:payload:x",
        key=message.key,
        headers=message.headers,
        timestamp=message.timestamp,
        retry_count=0,
        max_retries=3,
    )
    found = native.decode("t", 2, "7-1", flat)
    assert (found.payload, found.payload_ref) == (b"", "streaming:mq:payload:x")
    text, base64 = native.aside_text(message.payload)
    assert isinstance(json.loads(text), str)
    assert len(text) == native.stored_size(message.payload)
    loaded = native.with_body(found, text)
    assert (loaded.payload, loaded.payload_ref) == (message.payload, None)
    assert (h.PAYLOAD_ENCODING in loaded.headers) == base64


@given(messages, st.none() | st.just("g"))
def test_a_message_comes_back_from_the_retry_bucket(
    message: Message, group: str | None
) -> None:
    flat = native.item_fields(message, group=group, retry_count=4)
    assert len(fields(flat)) == 8
    item = native.decode_item("item", 9, flat)
    moved = native.moved_fields(flat, "2026-01-02T00:00:00Z")
    found = native.decode("t", 2, "8-0", moved)
    for copy in (item, found):
        assert copy.payload == message.payload
        assert copy.key == (message.key or None)
        assert copy.retry_count == 4
        assert copy.max_retries == message.max_retries
        assert copy.original_id == "7-1"
        assert h.application(copy.headers) == message.headers
        assert copy.headers.get(h.RETRY_GROUP) == group
        assert copy.headers[h.ORIGINAL_TIMESTAMP] == message.timestamp


@given(bodies, st.integers(1, 4))
def test_a_body_that_java_redelivered_is_still_read(
    payload: bytes, layers: int
) -> None:
    flat = fields(written(replace(RAW_MESSAGE, payload=payload)))
    text = flat["payload"].decode()
    for _ in range(layers):
        text = json.dumps(text, ensure_ascii=False)
    flat |= {"payload": text.encode(), "retryCount": b"%d" % layers}
    pairs = [item for k, v in flat.items() for item in (k.encode(), v)]
    assert native.decode("t", 2, "7-1", pairs).payload == payload


def test_a_message_sent_again_keeps_its_first_id_and_timestamp() -> None:
    first = {h.ORIGINAL_ID: "1-0", h.ORIGINAL_TIMESTAMP: "T", h.RETRY_GROUP: "old"}
    message = replace(RAW_MESSAGE, headers={"a": "1", h.PAYLOAD_SIZE: "9"} | first)
    assert native.retry_headers(message, None) == {
        "a": "1",
        h.ORIGINAL_ID: "1-0",
        h.ORIGINAL_TIMESTAMP: "T",
    }


def test_a_delayed_message_has_no_first_id() -> None:
    message = replace(RAW_MESSAGE, id="", payload=b"p")
    flat = native.item_fields(message, group=None, retry_count=0)
    assert fields(flat)["originalMessageId"] == b""
    assert native.decode_item("item", 9, flat).original_id is None


@pytest.mark.parametrize(
    "flat",
    [[], [b"payload", b"x"], [b"topic", b"t"], [b"topic", b"t", b"partitionId", b"x"]],
)
def test_an_item_without_a_place_to_go_cannot_be_decoded(flat: list[bytes]) -> None:
    with pytest.raises(Undecodable) as caught:
        native.decode_item("item", 9, flat)
    assert caught.value.entry_id == "item"


@pytest.mark.parametrize("timestamp", [b"", b"yesterday", b"2026-01-01 00:00:00Z"])
def test_a_timestamp_that_is_none_makes_the_entry_undecodable(
    timestamp: bytes,
) -> None:
    flat = [b"payload", b"kept", b"timestamp", timestamp]
    with pytest.raises(Undecodable) as caught:
        native.decode("t", 0, "7-1", flat)
    assert caught.value.fields == {b"payload": b"kept", b"timestamp": timestamp}
    assert (caught.value.entry_id, caught.value.payload) == ("7-1", b"kept")


def test_absent_fields_have_the_defaults_of_the_library() -> None:
    assert native.decode("t", 2, "1767225600000-0", []) == replace(
        RAW_MESSAGE, id="1767225600000-0"
    )


@pytest.mark.parametrize(
    ("stored", "headers"),
    [
        (b'{"a":1,"b":1.50,"c":true}', {"a": "1", "b": "1.50", "c": "true"}),
        (b'{"a":null,"b":"x"}', {"b": "x"}),
        (b'{"a":"x","b":{}}', {}),
        (b'{"a":"x","b":[1]}', {}),
        (b'{"a":NaN}', {}),
        (b'["a"]', {}),
        (b"null", {}),
        (b"", {}),
        (b"not json", {}),
        (b"{a=1, b=2}", {"a": "1", "b": "2"}),
        (b'{"a":"\xff"}', {"a": "\ufffd"}),
        (b'{"a":"\\ud800"}', {"a": "?"}),
        (b'{"a":' * 100_000, {}),
    ],
)
def test_headers_are_read_all_or_none(stored: bytes, headers: dict[str, str]) -> None:
    assert native.decode("t", 0, "7-1", [b"headers", stored]).headers == headers


def test_a_header_named_key_is_no_key() -> None:
    flat = [b"headers", b'{"key":"k"}']
    found = native.decode("t", 0, "7-1", flat)
    assert (found.key, found.headers) == (None, {"key": "k"})


def test_base64_is_decoded_only_where_a_header_says_so() -> None:
    flat = [b"payload", b'"AQID/w=="']
    assert native.decode("t", 0, "7-1", flat).payload == b'"AQID/w=="'
    marked = [*flat, b"headers", b'{"x-payload-encoding":"base64"}']
    assert native.decode("t", 0, "7-1", marked).payload == b"\1\2\3\xff"


@pytest.mark.parametrize("stored", [b"{}", b"[1, 2]", b"1.50", b"no json", b"\xff"])
def test_a_stored_body_that_is_no_string_is_handed_out_verbatim(stored: bytes) -> None:
    message = replace(RAW_MESSAGE, payload_ref="ref")
    assert native.with_body(message, stored).payload == stored


def test_one_value_that_cannot_be_decoded_leaves_the_others() -> None:
    flat = [
        *(kryo.dumps("payload"), b"\x01\x00com.example.Invoic\xe5\x02"),
        *(kryo.dumps("maxRetries"), b"\xff"),
        *(kryo.dumps("key"), kryo.dumps("k")),
    ]
    found = native.decode("t", 0, "7-1", flat)
    assert found.key == b"k"
    assert found.max_retries == 3
    assert found.payload == flat[1]


@pytest.mark.parametrize(
    ("flat", "codec"),
    [
        ([], "string"),
        ([b"payload", b"x"], "string"),
        ([b'"payload"', b'"x"'], "json"),
        ([b"\x037061796c6f61e4", b""], "string"),
        ([b"\x03payloa\xe4", b"\x00"], "kryo5"),
        ([b'"open', b"x"], "string"),
    ],
)
def test_the_codec_is_that_of_the_first_field_name(
    flat: list[bytes], codec: str
) -> None:
    assert native.codec_of(flat) == codec
