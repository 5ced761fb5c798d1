import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.codecs.csv_input import decode_rows
from mqctl.core.errors import BadData
from mqctl.core.message import Outgoing


def decode(text: bytes) -> list[tuple[int, bytes | None, bytes, int | None]]:
    found = decode_rows(text.splitlines(keepends=True))
    return [(m.line, m.key, m.payload, m.partition) for m in map(message_of, found)]


def message_of(found: Outgoing | BadData) -> Outgoing:
    if isinstance(found, BadData):
        raise found
    return found


def test_rows_become_messages_with_the_line_they_begin_at() -> None:
    text = b'key,payload,partition\na,1,\nb,"two\nlines",3\n,x,0\n'

    assert decode(text) == [
        (2, b"a", b"1", None),
        (3, b"b", b"two\nlines", 3),
        (5, b"", b"x", 0),
    ]


def test_without_a_key_column_there_is_no_key_and_headers_are_text() -> None:
    (message,) = map(
        message_of, decode_rows([b"payload,h:kind\n", b"\xff\xfe,caf\xc3\xa9\n"])
    )

    assert message.key is None
    assert message.payload == b"\xff\xfe"
    assert message.headers == {"kind": "café"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"payload,colour\nx,red\n", 1),
        (b"payload,payload\nx,y\n", 1),
        (b"payload,h:x-retry-group\nx,g\n", 1),
        (b"payload,key\nx\n", 2),
        (b"payload,partition\nx,one\n", 2),
        (b'payload\n"x"y\n', 2),
        (b"payload,h:a\nx,\xff\n", 2),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: bytes, line: int) -> None:
    with pytest.raises(BadData) as caught:
        decode(text)

    assert caught.value.facts["line"] == line


def test_rows_after_a_bad_one_are_read() -> None:
    found = list(decode_rows([b"payload,partition\n", b"a,x\n", b"b,1\n"]))

    assert isinstance(found[0], BadData)
    assert message_of(found[1]).payload == b"b"


@given(
    st.lists(
        st.tuples(st.text(), st.text()).filter(
            lambda row: "\x00" not in "".join(row) and "\r" not in "".join(row)
        )
    )
)
def test_what_a_csv_writer_wrote_is_read_back(rows: list[tuple[str, str]]) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([("key", "payload"), *rows])
    raw = out.getvalue().encode("utf-8", "surrogatepass")
    lines = [line + b"\n" for line in raw.split(b"\n")[:-1]]

    found = [(m.key, m.payload) for m in map(message_of, decode_rows(lines))]

    assert found == [
        (k.encode("utf-8", "surrogatepass"), p.encode("utf-8", "surrogatepass"))
        for k, p in rows
    ]
