import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.codecs import kryo
from tests.support import golden

VECTORS = golden.load("kryo_vectors")


def native(value: Any) -> Any:
    """The Python value of a vector's typed one."""
    ((kind, inner),) = value.items()
    match kind:
        case "list":
            return [native(item) for item in inner]
        case "map":
            return {name: native(item) for name, item in inner}
        case "long":
            return kryo.JavaLong(inner)
        case "bigint":
            return int(inner)
        case "bytes":
            return bytes.fromhex(inner)
        case _:
            return inner


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["hex"][:40])
def test_reads_what_java_wrote(vector: Any) -> None:
    found = kryo.loads(bytes.fromhex(vector["hex"]))
    assert (found, type(found)) == (
        native(vector["value"]),
        type(native(vector["value"])),
    )


@pytest.mark.parametrize(
    "vector", [v for v in VECTORS if v["write"]], ids=lambda v: v["hex"][:40]
)
def test_writes_the_bytes_that_java_writes(vector: Any) -> None:
    map_class = (vector["java"] or "").endswith("Map") and vector["java"]
    found = kryo.dumps(
        native(vector["value"]), map_class=map_class or kryo.LINKED_HASH_MAP
    )
    assert found.hex() == vector["hex"]


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.text(alphabet="aé中😀\0", max_size=80)
    | st.binary()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(values)
def test_every_value_comes_back(value: Any) -> None:
    assert kryo.loads(kryo.dumps(value)) == value


@given(st.text(alphabet=st.characters(exclude_categories=[]), max_size=80))
def test_lone_surrogates_come_back(text: str) -> None:
    # two surrogates side by side are one character to Java
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert kryo.loads(kryo.dumps(text)) == joined


@given(values, st.integers(min_value=1))
def test_a_value_cut_short_is_refused(value: Any, cut: int) -> None:
    raw = kryo.dumps(value)
    with pytest.raises(kryo.KryoError):
        kryo.loads(raw[: -(cut % len(raw)) or -1])


@given(st.binary(max_size=80) | st.binary(max_size=80).map(b"\x01\x00".__add__))
def test_foreign_bytes_are_read_or_refused(raw: bytes) -> None:
    try:
        kryo.loads(raw)
    except kryo.KryoError:
        assert raw != b"\x00"


def test_trailing_bytes_are_refused() -> None:
    with pytest.raises(kryo.KryoError, match="trailing"):
        kryo.loads(b"\x00\x00")


def test_an_object_of_an_unknown_class_is_opaque_at_any_depth() -> None:
    invoice = b"\x01\x00com.example.Invoic\xe5\x02\x03"
    assert kryo.loads(invoice) == kryo.Opaque(invoice)
    listed = b"\x01\x00java.util.ArrayLis\xf4\x02" + invoice.replace(b"\x00", b"\x01")
    assert kryo.loads(listed) == kryo.Opaque(listed)


def test_an_opaque_value_is_written_back_unchanged_but_not_inside_another() -> None:
    assert kryo.dumps(kryo.Opaque(b"\x01\x02")) == b"\x01\x02"
    with pytest.raises(kryo.KryoError):
        kryo.dumps([kryo.Opaque(b"\x01\x02")])


def test_a_forged_count_of_nulls_is_refused() -> None:
    with pytest.raises(kryo.KryoError, match="nulls"):
        kryo.loads(b"\x01\x00java.util.ArrayLis\xf4\xff\xff\xff\xff\x07\x00")


def test_values_nested_without_end_are_refused() -> None:
    listed = b"\x01\x00java.util.ArrayLis\xf4\x02" + b"\x01\x00\x02" * 100_000
    with pytest.raises(kryo.KryoError):
        kryo.loads(listed)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"\x04" + struct.pack("<f", 0.1), 0.1),
        (b"\x06\xff", -1),
        (b"\x07\x41\x00", "A"),
        (b"\x08\xfe\xff", -2),
        (b"\x03\x80", None),
        (b"\x01\x00java.util.Dat\xe5\xe8\x07", 1000),
        (b"\x01\x00java.time.Instan\xf4\x01\x00", "1970-01-01T00:00:01Z"),
        (
            b"\x01\x00java.time.Instan\xf4\x01\x01",
            "1970-01-01T00:00:01.000000001Z",
        ),
    ],
)
def test_reads_the_classes_without_a_vector(raw: bytes, value: Any) -> None:
    assert kryo.loads(raw) == value
