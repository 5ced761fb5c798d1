import json
from base64 import b64decode
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.codecs import dead_letter, java, kryo, native
from mqctl.codecs.entry import Codec
from mqctl.core import headers as h
from mqctl.core.message import DeadLetter, Death, Message
from tests.support import golden

ADDED = {h.KEY, h.PARTITION, h.ORIGINAL_TOPIC}
CODECS: list[Codec] = ["kryo5", "json", "string"]


def case(value: Any) -> str:
    name, expectation = value
    return f"{name}-{expectation['id']}"


RECORDED = golden.expected("dead_letters")


def read(name: str, expectation: Any) -> DeadLetter:
    entries = golden.entries(golden.load(name))
    flat = entries[expectation["stream"], expectation["id"]]
    topic = expectation["stream"].split(":")[-2]
    return dead_letter.decode(topic, expectation["id"], flat)


@pytest.mark.parametrize("recorded", RECORDED, ids=case)
def test_reads_every_recorded_dead_letter(recorded: Any) -> None:
    name, expectation = recorded
    found = read(name, expectation)
    message = found.message
    assert message.topic == expectation["topic"]
    assert message.partition == expectation["partition"]
    assert message.key == golden.key(expectation)
    assert message.retry_count == expectation["retry_count"]
    assert message.max_retries == expectation["max_retries"]
    assert message.timestamp == expectation["timestamp"]
    assert message.original_id == (expectation["original_id"] or message.id)
    assert message.payload_ref is None
    assert found.last_id == expectation["delivery_id"]
    assert found.failed_at_ms == java.parse_instant(expectation["failed_at"])
    assert found.codec == golden.load(name)["codec"]
    assert not message.headers.keys() & ADDED
    own = h.application(message.headers)
    # names that the library adds stay out even where an application chose them
    left_out = {h.FORCE_PARTITION, *ADDED}
    pairs = [p for p in expectation["headers"] if golden.text(p[0]) not in left_out]
    golden.check_headers(own, expectation | {"headers": pairs})


@pytest.mark.parametrize("recorded", RECORDED, ids=case)
def test_hands_out_the_body_of_every_recorded_dead_letter(recorded: Any) -> None:
    name, expectation = recorded
    found = read(name, expectation).message.payload
    if expectation["payload_kind"] == "opaque":
        assert found == golden.form(expectation["payload_raw"])
    else:
        golden.check_payload(found, expectation)


@pytest.mark.parametrize("recorded", RECORDED, ids=case)
def test_java_leaves_its_reason_to_the_counters(recorded: Any) -> None:
    name, expectation = recorded
    retries, limit = expectation["retry_count"], expectation["max_retries"]
    assert read(name, expectation).death == Death(
        reason="exhausted" if retries >= limit else "rejected", attempts=retries + 1
    )


@pytest.mark.parametrize("recorded", RECORDED, ids=case)
def test_the_partition_is_known_where_something_says_so(recorded: Any) -> None:
    name, expectation = recorded
    said = {golden.text(key) for key, _ in expectation["stored_headers"]}
    known = expectation["recorded_partition"] > 0 or h.PARTITION in said
    assert read(name, expectation).partition_known == known


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("recorded", RECORDED[:12], ids=case)
def test_a_dead_letter_written_in_another_codec_reads_the_same(
    recorded: Any, codec: Codec
) -> None:
    name, expectation = recorded
    found = read(name, expectation)
    flat = dead_letter.encode(
        found.message,
        found.death,
        codec=codec,
        failed_at_ms=found.failed_at_ms,
        last_id=found.last_id or "",
    )
    again = dead_letter.decode("t", found.message.id, flat)
    assert plain(again.message) == plain(found.message)
    assert replace(again, message=found.message) == replace(
        found, codec=codec, partition_known=True
    )


def plain(message: Message) -> Message:
    return replace(message, headers=h.application(message.headers))


texts = st.text() | st.text(alphabet='"\\\0\n😀é,= {}', max_size=9)
bodies = st.binary() | texts.map(str.encode)
messages = st.builds(
    Message,
    topic=st.text(min_size=1),
    partition=st.integers(0, 99),
    id=st.just("9-1"),
    payload=bodies,
    key=st.none() | bodies,
    headers=st.dictionaries(texts.map("a{}".format), texts),
    timestamp=st.just("2026-01-01T00:00:00.000123456Z"),
    ts_ms=st.just(1767225600000),
    retry_count=st.integers(0, 2**31 - 1),
    max_retries=st.integers(0, 2**31 - 1),
    first_id=st.just("8-0"),
)
deaths = st.builds(
    Death,
    reason=texts,
    detail=texts,
    group=texts,
    consumer=texts,
    attempts=st.integers(0, 2**31 - 1),
    exit_code=st.none() | st.integers(0, 255),
    signal=st.none() | texts,
    stderr=texts,
    raw=st.none() | texts,
)


@pytest.mark.parametrize("codec", CODECS)
@given(message=messages, death=deaths)
def test_a_written_dead_letter_is_read_back(
    codec: Codec, message: Message, death: Death
) -> None:
    flat = dead_letter.encode(
        message, death, codec=codec, failed_at_ms=1_800_000_000_007, last_id="8-0"
    )
    found = dead_letter.decode("ignored", "9-1", flat)
    assert plain(found.message) == message
    assert found.message.original_id == "8-0"
    assert replace(found, message=message) == DeadLetter(
        message=message,
        death=death,
        failed_at_ms=1_800_000_000_007,
        last_id="8-0",
        partition_known=True,
        codec=codec,
    )


MESSAGE = Message(
    topic="orders",
    partition=2,
    id="5-1",
    payload=b"p",
    key=b"k",
    headers={"a": "1"},
    timestamp="2026-01-01T00:00:00Z",
    ts_ms=1767225600000,
    retry_count=1,
    max_retries=3,
)
DEATH = Death(reason="rejected", group="g", attempts=2)


def encode(message: Message, death: Death, codec: Codec = "string") -> list[bytes]:
    return dead_letter.encode(
        message, death, codec=codec, failed_at_ms=0, last_id="5-1"
    )


def decoded(message: Message, death: Death) -> DeadLetter:
    return dead_letter.decode("t", "9-1", encode(message, death))


HEADERS = {
    "a": "1",
    "key": "k",
    "partitionId": "2",
    "x-original-message-id": "5-1",
    "x-dead-reason": "rejected",
    "x-dead-attempts": "2",
    "x-dead-group": "g",
    "x-payload-original-size": "3",
    "x-payload-storage-type": "inline",
}


def test_in_kryo_integers_are_integers_and_headers_a_hash_map() -> None:
    flat = encode(MESSAGE, DEATH, "kryo5")
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    assert {kryo.loads(k): kryo.loads(v) for k, v in fields.items()} == {
        "originalTopic": "orders",
        "payload": "p",
        "timestamp": "2026-01-01T00:00:00Z",
        "failedAt": "1970-01-01T00:00:00.000Z",
        "retryCount": 1,
        "maxRetries": 3,
        "partitionId": 2,
        "originalMessageId": "5-1",
        "headers": HEADERS,
    }
    assert fields[kryo.dumps("headers")].startswith(b"\x01\x00java.util.HashMa\xf0")


def test_in_json_names_and_texts_are_quoted_and_headers_marked() -> None:
    flat = encode(MESSAGE, DEATH, "json")
    pairs = zip(flat[::2], flat[1::2], strict=True)
    fields = {json.loads(k): json.loads(v) for k, v in pairs}
    assert (fields["payload"], fields["retryCount"]) == ("p", 1)
    assert fields["headers"] == {"@class": "java.util.HashMap"} | HEADERS
    assert next(iter(fields["headers"])) == "@class"


def test_in_json_no_header_of_an_application_names_a_class() -> None:
    message = replace(MESSAGE, headers={"@class": "com.example.Gadget"})
    flat = encode(message, DEATH, "json")
    assert b"Gadget" not in b"".join(flat)


def test_in_plain_text_headers_are_a_json_object() -> None:
    flat = encode(MESSAGE, DEATH, "string")
    assert json.loads(flat[flat.index(b"headers") + 1]) == HEADERS


def test_long_texts_are_cut_between_characters() -> None:
    death = replace(DEATH, detail="x" + "😀" * 300, stderr="😀" * 3000 + "x")
    found = decoded(MESSAGE, death).death
    assert found.detail == "x" + "😀" * 255
    assert found.stderr == "😀" * 2047 + "x"


def test_the_raw_fields_of_an_entry_can_be_had_back() -> None:
    raw = dead_letter.raw_of({b"payload": b"\xff\0", b"\x03a\xe4": b""})
    named = json.loads(b64decode(raw))
    assert {k: b64decode(v) for k, v in named.items()} == {
        "payload": b"\xff\0",
        "\x03a\\xe4": b"",
    }


def test_markers_of_a_missing_body_stay_with_the_dead_letter() -> None:
    markers = {h.PAYLOAD_MISSING: "true", h.PAYLOAD_MISSING_REF: "ref"}
    found = decoded(replace(MESSAGE, headers=markers), DEATH).message
    assert {k: found.headers[k] for k in markers} == markers


def test_a_body_that_waits_aside_is_named() -> None:
    flat = [
        *(b"payload", b"", b"headers"),
        b'{"x-payload-hash-ref":"r","x-payload-storage-type":"hash"}',
    ]
    assert dead_letter.decode("t", "9-1", flat).message.payload_ref == "r"


def test_an_entry_without_any_field_is_still_a_dead_letter() -> None:
    found = dead_letter.decode("t", "1767225600000-0", [])
    assert found == DeadLetter(
        message=Message(
            topic="t",
            partition=0,
            id="1767225600000-0",
            payload=b"",
            key=None,
            headers={},
            timestamp="2026-01-01T00:00:00.000Z",
            ts_ms=1767225600000,
            max_retries=3,
        ),
        death=Death(reason="rejected", attempts=1),
        failed_at_ms=1767225600000,
        last_id=None,
        partition_known=False,
        codec="string",
    )


@pytest.mark.parametrize(
    ("field", "header", "partition"),
    [
        ("0", "2", (2, True)),
        ("3", "2", (3, True)),
        ("0", "0", (0, True)),
        ("0", "x", (0, False)),
        ("x", "2", (2, True)),
    ],
)
def test_a_recorded_partition_0_gives_way_to_the_header(
    field: str, header: str, partition: tuple[int, bool]
) -> None:
    headers = json.dumps({"partitionId": header}).encode()
    flat = [b"partitionId", field.encode(), b"headers", headers]
    found = dead_letter.decode("t", "9-1", flat)
    assert (found.message.partition, found.partition_known) == partition


def test_a_replay_is_addressed_to_the_group_it_died_in() -> None:
    dead = decoded(MESSAGE, DEATH)
    assert dead_letter.replay_headers(dead, all_groups=False) == {
        "a": "1",
        "x-original-message-id": "5-1",
        "x-original-timestamp": "2026-01-01T00:00:00Z",
        "x-replay-count": "1",
        "x-retry-group": "g",
    }


def test_a_replay_to_all_groups_or_of_an_unknown_one_names_none() -> None:
    dead = decoded(MESSAGE, DEATH)
    nameless = decoded(MESSAGE, replace(DEATH, group=""))
    for headers in (
        dead_letter.replay_headers(dead, all_groups=True),
        dead_letter.replay_headers(nameless, all_groups=False),
    ):
        assert h.RETRY_GROUP not in headers


def test_every_replay_counts_and_keeps_what_came_first() -> None:
    first = {h.REPLAY_COUNT: "4", h.ORIGINAL_ID: "1-0", h.ORIGINAL_TIMESTAMP: "T"}
    dead = decoded(replace(MESSAGE, headers=first), DEATH)
    assert dead_letter.replay_headers(dead, all_groups=True) == {
        h.REPLAY_COUNT: "5",
        h.ORIGINAL_ID: "1-0",
        h.ORIGINAL_TIMESTAMP: "T",
    }


@given(messages)
def test_a_replayed_message_is_the_message_again(message: Message) -> None:
    dead = decoded(message, DEATH)
    flat = native.entry_fields(
        topic=message.topic,
        partition=message.partition,
        payload=dead.message.payload,
        key=dead.message.key,
        headers=dead_letter.replay_headers(dead, all_groups=False),
        timestamp="2026-01-02T00:00:00Z",
        retry_count=0,
        max_retries=message.max_retries or 0,
    )
    found = native.decode(message.topic, message.partition, "10-0", flat)
    assert (found.payload, found.key) == (message.payload, message.key)
    assert h.application(found.headers) == message.headers
    assert (found.retry_count, found.replay_count, found.retry_group) == (0, 1, "g")
