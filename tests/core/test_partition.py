"""The partitioner agrees with the Java library's, bit for bit."""

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.core.partition import choose, forced_partition, java_hash, key_partition

VECTORS = Path(__file__).parents[1] / "golden" / "java" / "partition_vectors.json"


def key_bytes(form: dict[str, object]) -> bytes:
    match form:
        case {"text": str(text)}:
            return text.encode()
        case {"hex": str(text)}:
            return bytes.fromhex(text)
        case {"repeat": [str(text), int(times)]}:
            return text.encode() * times
    raise AssertionError(form)


def test_all_recorded_vectors_give_java_s_hash_and_partition() -> None:
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
    assert len(vectors) == 500
    for vector in vectors:
        key = key_bytes(vector["key"])
        assert java_hash(key.decode()) == vector["hash"], vector["key"]
        for count, partition in vector["partitions"].items():
            assert key_partition(key, int(count)) == partition, (vector["key"], count)


@pytest.mark.parametrize(
    ("key", "value", "partitions"),
    [
        ("", 0, (0, 0, 0, 0, 0, 0)),
        ("a", 97, (0, 1, 1, 6, 1, 1)),
        ("k-1", 104271, (0, 0, 3, 6, 7, 15)),
        ("order-1001", 708180863, (0, 2, 3, 5, 7, 15)),
        ("user:42", -147170163, (0, 0, 1, 0, 5, 13)),
        ("customer-000017", -1872591115, (0, 2, 1, 4, 5, 5)),
        ("polygenelubricants", -2147483648, (0, 1, 0, 5, 0, 0)),
        ("中文键", 20076404, (0, 2, 0, 5, 4, 4)),
        ("naïve", 104710475, (0, 2, 3, 2, 3, 11)),
        ("😀", 1772899, (0, 1, 3, 2, 3, 3)),
        ("mixé😀中", 1132457981, (0, 2, 1, 4, 5, 13)),
        ("Aa", 2112, (0, 0, 0, 5, 0, 0)),
        ("BB", 2112, (0, 0, 0, 5, 0, 0)),
        (
            "the quick brown fox jumps over the lazy dog",
            -2082818701,
            (0, 2, 3, 2, 3, 3),
        ),
    ],
)
def test_published_keys_land_where_the_table_says(
    key: str, value: int, partitions: tuple[int, ...]
) -> None:
    assert java_hash(key) == value
    found = tuple(key_partition(key.encode(), n) for n in (1, 3, 4, 7, 8, 16))
    assert found == partitions


def test_a_key_that_is_not_utf8_is_hashed_as_java_would_read_it() -> None:
    assert key_partition(b"a\xffb", 64) == key_partition("a\ufffdb".encode(), 64)


@given(st.text())
def test_the_hash_is_a_signed_32_bit_number_for_any_text(text: str) -> None:
    assert -(2**31) <= java_hash(text) < 2**31


@given(st.text(alphabet=st.characters(max_codepoint=127)), st.text())
def test_the_ascii_path_and_the_utf16_path_agree(ascii_text: str, other: str) -> None:
    both = ascii_text + "é" + other
    value = 0
    raw = both.encode("utf-16-be", "surrogatepass")
    for high, low in zip(raw[::2], raw[1::2], strict=True):
        value = 31 * value + 256 * high + low
    assert java_hash(both) % 2**32 == value % 2**32
    assert java_hash(ascii_text) % 2**32 == (
        sum(ord(c) * 31**i for i, c in enumerate(reversed(ascii_text))) % 2**32
    )


@pytest.mark.parametrize(
    ("text", "partition"),
    [
        ("0", 0),
        ("5", 1),
        ("+5", 1),
        ("-1", 3),
        ("-4", 0),
        ("007", 3),
        ("-0", 0),
        ("0" * 5000 + "6", 2),
        ("2147483647", 3),
        ("-2147483648", 0),
        ("٣", 3),
        ("\uff12", 2),
    ],
)
def test_a_forced_partition_is_reduced_by_floor_mod(text: str, partition: int) -> None:
    assert forced_partition(text, 4) == partition


@pytest.mark.parametrize(
    "text",
    [
        *("", "+", "-", " 1", "1 ", "1\n", "1_0", "1.0", "0x1", "--1", "²", "one"),
        *("2147483648", "-2147483649", "9" * 5000),
        "\U0001d7d9",  # a digit outside the BMP: two units, neither of them a digit
    ],
)
def test_what_java_cannot_parse_forces_nothing(text: str) -> None:
    assert forced_partition(text, 4) is None
    assert choose(b"a", 4, text, Random(1)) == key_partition(b"a", 4)


@given(
    st.none() | st.binary(max_size=20),
    st.integers(-1, 300),
    st.none() | st.text(max_size=5) | st.integers().map(str),
    st.integers(),
)
def test_the_choice_is_always_a_partition_of_the_topic(
    key: bytes | None, count: int, forced: str | None, seed: int
) -> None:
    assert 0 <= choose(key, count, forced, Random(seed)) < max(1, count)


def test_the_header_wins_over_the_key_and_the_key_over_chance() -> None:
    assert choose(b"a", 4, "2", Random(1)) == 2
    assert choose(b"a", 4, None, Random(1)) == 1
    assert choose(b"", 4, None, Random(1)) == 0


def test_without_a_key_every_partition_is_chosen() -> None:
    random = Random(7)
    assert {choose(None, 8, None, random) for _ in range(400)} == set(range(8))
