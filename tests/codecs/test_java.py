import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.codecs import java
from mqctl.core.partition import java_hash, key_partition
from tests.support import golden


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:00z", 0),
        ("2024-01-01T00:00:00.5Z", 1704067200500),
        ("2024-01-01T00:00:00.123456789Z", 1704067200123),
        ("2024-02-29T23:59:59.000000001Z", 1709251199000),
        ("2024-01-01T08:00:00+08:00", 1704067200000),
        ("2023-12-31T19:00:00.000-05:00", 1704067200000),
        ("2024-01-01T00:00:00+00:00", 1704067200000),
        ("1969-12-31T23:59:59.999Z", -1),
        ("0001-01-01T00:00:00Z", -62135596800000),
    ],
)
def test_reads_the_instants_that_java_reads(text: str, ms: int) -> None:
    assert java.parse_instant(text) == ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2024-01-01 00:00:00Z",
        "2024-01-01T00:00Z",
        "2024-01-01T00:00:00",
        "2024-01-01T00:00:00.Z",
        "2024-01-01T00:00:00.1234567890Z",
        "2024-02-30T00:00:00Z",
        "2024-01-01T24:00:01Z",
        "2024-01-01T00:60:00Z",
        "2024-01-01T00:00:00+19:00",
        "2024-01-01T00:00:00Z\n",
        "٢٠٢٤-01-01T00:00:00Z",
    ],
)
def test_refuses_the_instants_that_java_refuses(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the class is the contract
        java.parse_instant(text)


@given(st.integers(min_value=-62135596800000, max_value=253402300799999))
def test_a_formatted_instant_is_read_back(ms: int) -> None:
    assert java.parse_instant(java.format_instant(ms)) == ms


def test_an_instant_after_year_9999_can_still_be_read() -> None:
    assert java.format_instant(2**64 - 1) == "9999-12-31T23:59:59.999Z"


@given(st.text() | st.text(alphabet='"\\\b\t\n\f\r\0\x1f\x7fé😀'))
def test_the_json_size_is_that_of_the_json_text(text: str) -> None:
    encoded = json.dumps(text, ensure_ascii=False).encode()
    assert java.json_size(text.encode()) == len(encoded)


def quoted(text: str, layers: int) -> str:
    for _ in range(layers):
        text = json.dumps(text, ensure_ascii=False)
    return text


awkward = st.text(alphabet='"\\a\n😀', max_size=20)


@given(awkward | st.text(), st.integers(0, 4))
def test_the_quoting_of_redeliveries_is_undone(text: str, layers: int) -> None:
    size = java.json_size(text.encode())
    assert java.unwrap(quoted(text, layers), layers, size) == text


@given(awkward | st.text(), st.integers(0, 4), st.integers(1, 9))
def test_a_text_redelivered_without_quoting_is_left_alone(
    text: str, layers: int, retries: int
) -> None:
    size = java.json_size(text.encode())
    found = java.unwrap(quoted(text, min(layers, retries)), retries, size)
    assert found == text


@given(awkward | st.text(), st.integers(0, 4))
def test_after_a_replay_the_size_says_how_many_layers_there_are(
    text: str, layers: int
) -> None:
    size = java.json_size(text.encode())
    assert java.unwrap(quoted(text, layers), 0, size, replayed=True) == text


def test_after_a_replay_a_map_is_known_by_the_size_of_its_json() -> None:
    assert java.unwrap(quoted('{"a":1}', 3), 0, 7, replayed=True) == '{"a":1}'


def test_after_a_replay_a_size_that_is_never_met_changes_nothing() -> None:
    text = quoted("hello", 2)
    assert java.unwrap(text, 0, 99, replayed=True) == text
    assert java.unwrap(text, 0, None, replayed=True) == text


def test_without_a_size_every_redelivery_counts() -> None:
    assert java.unwrap('"\\"a\\""', 1, None) == '"a"'


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("{}", {}),
        ("{a=1}", {"a": "1"}),
        ("{a=1, b=}", {"a": "1", "b": ""}),
        ("{note=x=y, z, b={c=d}}", {"note": "x=y, z", "b": "{c=d}"}),
        ("a=1", None),
        ("{", None),
        ('{"a":1', None),
        ('{"a":"b=c",}', None),
    ],
)
def test_reads_a_printed_map_as_far_as_it_can_be_read(
    text: str, entries: dict[str, str] | None
) -> None:
    assert java.parse_map(text) == entries


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"@class":"java.util.HashMap","a":1}', {"a": 1}),
        ('["java.util.ArrayList",[["java.lang.Long",5],"x"]]', [5, "x"]),
        ('["java.util.ArrayList",["a.b","c.d"]]', ["a.b", "c.d"]),
        ('["java.util.ArrayList",["a.b",["java.lang.Long",1]]]', ["a.b", 1]),
        ('["[B","AQID/w=="]', b"\1\2\3\xff"),
        ('["java.math.BigInteger",100000000000000000000]', 10**20),
        ('["a",1]', ["a", 1]),
        ('"text"', "text"),
        ("null", None),
    ],
)
def test_reads_typed_json_without_its_marks(text: str, value: Any) -> None:
    assert java.typed_json(text) == value


def test_typed_json_that_is_none_is_refused() -> None:
    for text in ("{", "[" * 100_000, ""):
        with pytest.raises(ValueError):  # noqa: PT011 - the class is the contract
            java.typed_json(text)


def test_compact_json_is_always_json() -> None:
    value = {"n": float("nan"), "i": float("-inf"), "b": b"\xff", "l": [1, None, "é"]}
    assert java.compact_json(value) == (
        '{"n":"NaN","i":"-Infinity","b":"/w==","l":[1,null,"é"]}'
    )


def test_a_key_goes_to_the_partition_that_java_chooses() -> None:
    for vector in golden.load("partition_vectors"):
        key = golden.form(vector["key"])
        assert java_hash(key.decode()) == vector["hash"]
        for count, partition in vector["partitions"].items():
            assert key_partition(key, int(count)) == partition
