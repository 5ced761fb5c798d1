"""Printing records: the format asked for, else a table on a terminal, else NDJSON."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from mqctl.cli.context import Context
from mqctl.cli.options import flag

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Form = Literal["table", "ndjson", "json", "csv", "raw", "none"]
OutputForm = Annotated[
    Form | None,
    flag(
        "--output",
        "-o",
        help="How records are printed.",
        show_default="table on a terminal, else ndjson",
    ),
]


def show(
    context: Context,
    records: Iterable[dict[str, object]],
    output: Form | None,
    *,
    columns: Sequence[str] = (),
    brief: Sequence[str] = (),
    single: bool = False,
    now_ms: int | None = None,
) -> None:
    """Write records to stdout; `brief` fields are those a narrow table keeps."""
    from mqctl.render.records import write_records

    terminal = context.terminal()
    write_records(
        records,
        output or ("table" if context.out.isatty else "ndjson"),
        context.out,
        columns=columns,
        brief=brief,
        single=single,
        width=terminal.width,
        color=terminal.color,
        now_ms=now_ms,
    )


def record_of(item: "DataclassInstance") -> dict[str, object]:
    """Return a dataclass as a record: its fields, and `X_at` before each `X_at_ms`."""
    from dataclasses import fields

    from mqctl.core.clock import rfc3339

    record: dict[str, object] = {}
    for field in fields(item):
        value = getattr(item, field.name)
        if field.name.endswith("_at_ms"):
            record[field.name[:-3]] = None if value is None else rfc3339(value)
        record[field.name] = value
    return record
