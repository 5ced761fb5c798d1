"""The hot path of producing gives the very bytes that the plain one gives."""

from io import BufferedReader, BytesIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mqctl.codecs import native
from mqctl.core.clock import rfc3339
from mqctl.core.keys import KeySpace
from mqctl.engine.packing import EntryPacker
from mqctl.store.wire import Arg, pack
from tests.support.proxy import read_frame

KEYS = KeySpace()
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
HEADERS = st.dictionaries(TEXT | st.sampled_from(["%", '"', "\\", "é", "a b"]), TEXT)
PAYLOADS = st.binary(max_size=200) | TEXT.map(str.encode)


def plain(
    topic: str,
    moment: int,
    bound: list[Arg],
    message: tuple[int, bytes, bytes | None, dict[str, str], int],
) -> bytes:
    partition, payload, key, headers, max_retries = message
    fields = native.entry_fields(
        topic=topic,
        partition=partition,
        payload=payload,
        key=key,
        headers=headers,
        timestamp=rfc3339(moment),
        retry_count=0,
        max_retries=max_retries,
    )
    return pack(("XADD", KEYS.partition(topic, partition), *bound, "*", *fields))


MESSAGES = st.tuples(
    st.integers(0, 20),
    PAYLOADS,
    st.none() | st.binary(max_size=20),
    HEADERS,
    st.integers(0, 10**6),
)


@given(
    st.sampled_from(["t", "grün %s", "{x}"]),
    st.lists(st.tuples(st.integers(0, 2**41), MESSAGES), min_size=1, max_size=5),
)
@example("t", [(0, (0, b"", None, {}, 3))])
@example("t", [(0, (0, b"\xff", b"", {"%d": '"%s%%', "x-payload-encoding": "x"}, 0))])
@example("t", [(0, (1, b'"\\\x00', b"\xff", {"é\n": "%"}, 3))] * 2)
@example("t", [(0, (0, b"{}", None, {"x-payload-hash-ref": "r", "a": "b"}, 3))])
def test_packed_is_what_the_codec_writes(
    topic: str,
    sent: list[tuple[int, tuple[int, bytes, bytes | None, dict[str, str], int]]],
) -> None:
    packer = EntryPacker(KEYS, topic)
    for moment, message in sent:
        packer.at(moment)
        assert packer.pack(*message) == plain(topic, moment, [], message)


@pytest.mark.parametrize(("exact", "sign"), [(True, "="), (False, "~")])
def test_the_length_bound_goes_with_each_entry(exact: bool, sign: str) -> None:
    packer = EntryPacker(KEYS, "t", max_len=500, exact=exact)
    message = (1, b"p", b"k", {"a": "b"}, 3)
    packer.at(5)
    assert packer.pack(*message) == plain("t", 5, ["MAXLEN", sign, 500], message)


@given(st.lists(MESSAGES, max_size=4))
def test_pieces_joined_are_whole_commands(
    messages: list[tuple[int, bytes, bytes | None, dict[str, str], int]],
) -> None:
    packer = EntryPacker(KEYS, "t")
    packer.at(1)
    data = b"".join(b"".join(packer.pieces(*message)) for message in messages)
    file = BufferedReader(BytesIO(data))  # type: ignore[arg-type]
    frames = [read_frame(file) for _ in messages]
    assert b"".join(frames) == data


def test_many_sizes_below_the_same_headers() -> None:
    packer = EntryPacker(KEYS, "t")
    packer.at(1)
    headers = {"a": "b"}
    for size in [*range(300), *range(300)]:
        message = (0, b"x" * size, None, headers, 3)
        assert packer.pack(*message) == plain("t", 1, [], message)
