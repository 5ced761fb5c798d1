"""Key names are those of the wire format; slots are those of the cluster."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.core.keys import KeySpace, share_slot, slot_of

P, S = "streaming:mq", "stream:topic"


@pytest.mark.parametrize(
    ("key", "slot"),
    [
        ("123456789", 12739),  # 0x31C3, the check value of CRC16/XMODEM
        ("", 0),
        ("foo", 12182),
        ("bar", 5061),
        ("{foo}", 12182),
        ("{foo}:lease", 12182),
        ("a{foo}b", 12182),
    ],
)
def test_published_slots(key: str, slot: int) -> None:
    assert slot_of(key) == slot


@pytest.mark.parametrize(
    ("key", "tag"),
    [
        ("{user1000}.following", "user1000"),
        ("foo{{bar}}zap", "{bar"),
        ("foo{bar}{zap}", "bar"),
        ("}foo{bar}", "bar"),
    ],
)
def test_only_the_first_non_empty_tag_is_hashed(key: str, tag: str) -> None:
    assert slot_of(key) == slot_of(tag)


@pytest.mark.parametrize("key", ["foo{}{bar}", "{}foo", "foo{bar", "foo}bar{", "{}"])
def test_without_a_tag_the_whole_key_is_hashed(key: str) -> None:
    # The same bytes inside a tag of their own, as long as they hold no "}".
    if "}" not in key:
        assert slot_of(key) == slot_of("{" + key + "}")
    assert slot_of(key) == bitwise_crc16(key.encode()) % 16384


@given(st.text())
def test_every_key_has_a_slot(key: str) -> None:
    assert 0 <= slot_of(key) < 16384


@given(st.text(st.characters(exclude_characters="{}"), min_size=1), st.text())
def test_a_key_in_braces_shares_the_slot_of_the_key(key: str, rest: str) -> None:
    assert share_slot([key, "{" + key + "}", "{" + key + "}" + rest])
    assert slot_of(key) == bitwise_crc16(key.encode()) % 16384


def test_keys_of_a_tagged_topic_share_a_slot_and_those_of_a_plain_one_do_not() -> None:
    keys = KeySpace()
    tagged = [keys.partition("{t}", 0), keys.lease("{t}", "g", 0), keys.dlq("{t}")]
    assert share_slot(tagged)
    assert not share_slot([keys.partition("t", 0), keys.lease("t", "g", 0)])
    assert share_slot([])


def test_every_key_is_spelled_as_in_the_wire_format() -> None:
    keys = KeySpace()
    assert keys.partition("t", 3) == f"{S}:t:p:3"
    assert keys.dlq("t") == f"{S}:t:dlq"
    assert keys.registry == f"{P}:topics:registry"
    assert keys.meta("t") == f"{P}:topic:t:meta"
    assert keys.partitions("t") == f"{P}:topic:t:partitions"
    assert keys.lease("t", "g", 3) == f"{P}:lease:t:g:3"
    assert keys.retries("t") == f"{P}:retry:t"
    assert keys.retry_item("t", "u") == f"{P}:retry:item:t:u"
    assert keys.commit("t", 3) == f"{P}:commit:t:p:3"
    assert keys.acks("t", 3, "1-0") == f"{P}:acks:t:p:3:1-0"
    assert keys.payload("t", 3, "u") == f"{P}:payload:t:p:3:u"
    assert keys.payload_index("t") == f"{P}:payload:idx:t"
    assert keys.payload_times == f"{P}:payload:ts"
    assert keys.members("g") == f"{P}:members:g"
    assert keys.acked("t", 3) == f"{P}:acked:t:p:3"
    assert keys.replayed("t") == f"{P}:dlq:replayed:t"


def test_both_prefixes_can_be_replaced_and_nothing_is_escaped() -> None:
    keys = KeySpace(control="acme:mq", stream="acme:s")
    assert keys.partition("a:b", 0) == "acme:s:a:b:p:0"
    assert keys.lease("ünï code", "g*", 1) == "acme:mq:lease:ünï code:g*:1"


def bitwise_crc16(data: bytes) -> int:
    """CRC16/XMODEM by its definition: polynomial 0x1021, start 0."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1
        crc &= 0xFFFF
    return crc
