"""Records in every output format: what a command prints that is not a message."""

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

from mqctl.core.errors import BadUsage
from mqctl.render.csvline import csv_line
from mqctl.render.notes import json_bytes

Record = dict[str, object]
RecordFormat = Literal["table", "ndjson", "json", "csv", "raw", "none"]


class Sink(Protocol):
    """Where bytes go."""

    def write(self, data: bytes, /) -> object:
        """Take all of the bytes."""


def write_records(
    records: Iterable[Record],
    output: RecordFormat,
    out: Sink,
    *,
    columns: Sequence[str] = (),
    brief: Sequence[str] = (),
    single: bool = False,
    width: int | None = None,
    color: bool = False,
    now_ms: int | None = None,
) -> None:
    """Write records with the fields `columns`, in that order; a missing one is a bug.

    Without `columns` each record's own fields are taken (the first record's as the
    header of a CSV or table). `single` says that there is exactly one record, which
    is the document itself in JSON and a list of names and values in a table.
    `width`, `color`, `now_ms` (for ages instead of dates) and `brief` (the fields
    that are left when not all fit) only concern tables; a width of None cuts and
    wraps nothing. No records: `[]` in JSON, else nothing.

    BadUsage for `raw`: records have no payload.
    """
    if output == "none":
        return
    if output == "raw":
        raise BadUsage("raw output is for messages", hint="-o ndjson")
    picked = (_picked(record, columns) for record in records)
    if output == "ndjson":
        for record in picked:
            out.write(json_bytes(record) + b"\n")
    elif output == "csv":
        _write_csv(picked, out)
    elif output == "json":
        found = list(picked)
        out.write(json_bytes(found[0] if single else found, indent=True) + b"\n")
    else:
        found = list(picked)
        if found:
            text = _table(found, brief, width, single, color=color, now_ms=now_ms)
            out.write(text.encode("utf-8", "backslashreplace"))


def _picked(record: Record, columns: Sequence[str]) -> Record:
    return {name: record[name] for name in columns} if columns else record


def _write_csv(records: Iterable[Record], out: Sink) -> None:
    names: list[str] = []
    for record in records:
        if not names:
            names = list(record)
            out.write(csv_line(names))
        out.write(csv_line(_csv_cell(record[name]) for name in names))


def _csv_cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return json_bytes(value).decode()
    return value


def _table(
    records: list[Record],
    brief: Sequence[str],
    width: int | None,
    single: bool,  # noqa: FBT001 - as in write_records
    *,
    color: bool,
    now_ms: int | None,
) -> str:
    from mqctl.render import table

    if single:
        return table.name_value(records[0], width, color=color, now_ms=now_ms)
    return table.rows(records, width, color=color, now_ms=now_ms, brief=brief)
