"""CSV rows as messages: a header row, then `key payload partition h:NAME` columns.

Bytes that are not UTF-8 pass through unchanged. A quoted field may hold newlines.
"""

import csv
from collections.abc import Callable, Iterable, Iterator

from mqctl.core.errors import BadData
from mqctl.core.headers import is_transport
from mqctl.core.message import Outgoing

_KNOWN = ("key", "payload", "partition")
_HEADER = "h:"
_LARGEST = 1 << 30


def decode_rows(lines: Iterable[bytes]) -> Iterator[Outgoing | BadData]:
    """Yield a message, or what is wrong, for each row that is not empty.

    `lines` come with their line ends; `line` is where a row begins, 1-based. A header
    row that cannot be used raises BadData before anything is yielded. A missing key
    column is no key, an empty cell the empty key.
    """
    csv.field_size_limit(_LARGEST)
    text = (line.decode("utf-8", "surrogateescape") for line in lines)
    reader = csv.reader(text, strict=True)
    columns: list[str] | None = None
    while True:
        begins = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            yield BadData(f"line {begins} is not CSV: {error}", line=begins)
            continue
        if row is None:
            return
        if columns is None:
            _check(row)
            columns = row
        elif row:
            yield _message_or_error(columns, row, begins)


def _message_or_error(
    columns: list[str], row: list[str], line: int
) -> Outgoing | BadData:
    try:
        return _message(columns, row, line)
    except BadData as error:
        return error


def _check(columns: list[str]) -> None:
    for name in columns:
        if name in _KNOWN or (name.startswith(_HEADER) and name != _HEADER):
            continue
        raise BadData(
            f"line 1: unknown column {name!a}",
            hint="columns are key, payload, partition and h:NAME",
            line=1,
        )
    if len(set(columns)) != len(columns):
        raise BadData("line 1: a column stands twice", line=1)
    reserved = [c for c in columns if is_transport(c.removeprefix(_HEADER))]
    if reserved:
        raise BadData(f"line 1: header {reserved[0]} is reserved", line=1)


def _message(columns: list[str], row: list[str], line: int) -> Outgoing:
    if len(row) != len(columns):
        raise BadData(
            f"line {line} has {len(row)} cells, the header row has {len(columns)}",
            line=line,
        )
    cells = dict(zip(columns, row, strict=True))
    headers = {
        name.removeprefix(_HEADER): _text(value, line)
        for name, value in cells.items()
        if name.startswith(_HEADER)
    }
    key = cells.get("key")
    return Outgoing(
        payload=_bytes(cells.get("payload", "")),
        key=None if key is None else _bytes(key),
        headers=headers,
        partition=_optional(cells.get("partition", ""), _number(line)),
        line=line,
    )


def _bytes(cell: str) -> bytes:
    return cell.encode("utf-8", "surrogateescape")


def _text(cell: str, line: int) -> str:
    try:
        cell.encode()
    except UnicodeEncodeError:
        raise BadData(f"line {line}: a header is not UTF-8", line=line) from None
    return cell


def _optional(cell: str, read: Callable[[str], int]) -> int | None:
    return read(cell) if cell else None


def _number(line: int) -> Callable[[str], int]:
    def read(cell: str) -> int:
        if not (cell.isascii() and cell.isdigit()):
            raise BadData(f"line {line}: partition {cell!a} is no number", line=line)
        return int(cell)

    return read
