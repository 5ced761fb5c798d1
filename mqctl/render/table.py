"""Records as tables for people: the only part of rendering that needs Rich.

Numbers are grouped and to the right, ids stay whole, `X_at_ms` becomes an age and
any other `X_ms` a duration, null is `-`. Rows too wide for the terminal say once
above the table what is the same in all of them; if that is not enough, each record
is listed by name and value.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from mqctl.core.clock import rfc3339
from mqctl.core.units import coarse, grouped, short_duration
from mqctl.render.notes import escape, json_bytes

_Record = dict[str, object]

_GAP = 2  # between columns
_LEAST = 12  # columns a text keeps when space is short
_NO_LIMIT = 10**9
_CUT = {"payload_start", "detail", "stderr"}  # the start says enough in a row
_EXACT = {"item", "url", "receipt"}  # useless unless whole
_UNGROUPED = {"pid", "hash"}  # numbers that count nothing


@dataclass(frozen=True, slots=True)
class _Column:
    """A column's label, its cells as plain text, and how they may be laid out."""

    label: str
    cells: list[str]
    justify: JustifyMethod
    flexible: bool
    cut: bool

    @property
    def natural(self) -> int:
        """Width at which nothing wraps."""
        return max(map(cell_len, [self.label, *self.cells]))

    @property
    def least(self) -> int:
        """Width below which the column is of no use."""
        word = max(map(len, self.label.split()))
        widest = max(map(cell_len, self.cells))
        return max(word, min(widest, _LEAST) if self.flexible else widest)


def rows(
    records: Sequence[_Record],
    width: int | None,
    *,
    color: bool = False,
    now_ms: int | None = None,
    brief: Sequence[str] = (),
) -> str:
    """Return a table with a row for each record, at least one; width None: no limit.

    `now_ms`, epoch ms, is what ages are counted from; without it times are dates.
    `brief` names the fields that are left when all of them do not fit.
    """
    limit = _NO_LIMIT if width is None else width
    columns = _columns(records, now_ms)
    if _fits(columns, limit):
        return _printed([_table(columns, limit)], color=color)
    if brief:
        told = [{name: record[name] for name in brief} for record in records]
        return rows(told, width, color=color, now_ms=now_ms)
    same = [column for column in columns if len(set(column.cells)) == 1]
    for count in range(1, len(same) + 1 if len(records) > 1 else 0):
        above = same[:count]
        rest = [column for column in columns if column not in above]
        if rest and _fits(rest, limit):
            facts = "  ".join(f"{column.label}: {column.cells[0]}" for column in above)
            parts: list[Table | Text] = [Text(facts), Text(), _table(rest, limit)]
            return _printed(parts, color=color, width=limit)
    blocks = [
        name_value(record, width, color=color, now_ms=now_ms) for record in records
    ]
    return "\n".join(blocks)


def name_value(
    record: _Record,
    width: int | None,
    *,
    color: bool = False,
    now_ms: int | None = None,
) -> str:
    """Return one record as two columns, a line or more for each field."""
    limit = _NO_LIMIT if width is None else width
    columns = _columns([record], now_ms)
    names = max(cell_len(column.label) for column in columns)
    whole = [cell_len(column.cells[0]) for column in columns if not column.flexible]
    room = max([limit - names - _GAP, _LEAST // 2, *whole])
    grid = Table.grid(padding=(0, _GAP, 0, 0))
    grid.add_column(style="bold", width=names)
    grid.add_column(overflow="fold")
    for name, column in zip(_shown(record), columns, strict=True):
        grid.add_row(Text(column.label), _value(record[name], column, room, now_ms))
    return _printed([grid], color=color, width=names + _GAP + room)


def _value(
    value: object, column: _Column, room: int, now_ms: int | None
) -> Table | Text:
    """Return a nested table for a list of records, else the cell's text."""
    records = _as_records(value)
    if records:
        nested = _columns(records, now_ms)
        if _fits(nested, room):
            return _table(nested, room)
    return Text(column.cells[0], overflow="fold")


def _as_records(value: object) -> list[_Record]:
    if not isinstance(value, list):
        return []
    records = [item for item in value if isinstance(item, dict) and item]
    return records if len(records) == len(value) else []


# Columns


def _shown(record: _Record) -> list[str]:
    """Return the names without `X_at` where `X_at_ms` says the same."""
    return [name for name in record if f"{name}_ms" not in record or name[-3:] != "_at"]


def _columns(records: Sequence[_Record], now_ms: int | None) -> list[_Column]:
    return [
        _column(name, records, _label(name, records[0]), now_ms)
        for name in _shown(records[0])
    ]


def _column(
    name: str, records: Sequence[_Record], label: str, now_ms: int | None
) -> _Column:
    values = [record.get(name) for record in records]
    number = any(isinstance(value, (int, float)) for value in values)
    return _Column(
        label=label,
        cells=[_cell(name, value, now_ms) for value in values],
        justify="right" if number and not isinstance(values[0], bool) else "left",
        flexible=not (number or name in _EXACT or "id" in name.split("_")),
        cut=name in _CUT,
    )


def _label(name: str, record: _Record) -> str:
    bare = name.removesuffix("_ms")
    if bare != name and bare in _shown(record):
        bare = f"{bare}_time"  # lag counts entries, lag_ms is a time
    return escape(bare.replace("_", " ")) or "-"


def _cell(name: str, value: object, now_ms: int | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return _number(name, value, now_ms)
    if isinstance(value, float):
        return _decimal(value)
    return _text(value)


def _text(value: object) -> str:
    if isinstance(value, dict) and value and not _nested(value.values()):
        parts = (f"{name}: {'-' if v is None else v}" for name, v in value.items())
        return escape(", ".join(parts))
    if isinstance(value, list) and not _nested(value):
        return escape(", ".join(map(str, value))) or "-"
    if isinstance(value, (dict, list)):
        return escape(json_bytes(value).decode())
    return escape(str(value))


def _nested(values: Iterable[object]) -> bool:
    return any(isinstance(value, (dict, list)) for value in values)


def _number(name: str, value: int, now_ms: int | None) -> str:
    if name.endswith("_at_ms"):
        return rfc3339(value) if now_ms is None else _age(now_ms - value)
    if name.endswith("_ms"):
        return short_duration(coarse(value))
    return str(value) if name in _UNGROUPED else grouped(value)


def _decimal(value: float) -> str:
    if abs(value) < 1:
        return f"{value:.3g}"
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def _age(ms: int) -> str:
    text = short_duration(coarse(abs(ms)))
    return f"{text} ago" if ms >= 0 else f"in {text}"


# Layout


def _fits(columns: Sequence[_Column], limit: int) -> bool:
    return sum(column.least + _GAP for column in columns) - _GAP <= limit


def _widths(columns: Sequence[_Column], limit: int) -> list[int]:
    """Return a width for each column, taken from the widest until all fit."""
    widths = [column.natural for column in columns]
    least = [column.least for column in columns]
    excess = sum(widths) + _GAP * (len(widths) - 1) - limit
    while excess > 0:
        spare = [(width, i) for i, width in enumerate(widths) if width > least[i]]
        widest, index = max(spare)
        second = max([width for width, i in spare if i != index], default=0)
        step = min(excess, max(1, widest - second), widest - least[index])
        widths[index] -= step
        excess -= step
    return widths


def _table(columns: Sequence[_Column], limit: int) -> Table:
    table = Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),  # and the box's own blank
        header_style="bold",
    )
    for column, width in zip(columns, _widths(columns, limit), strict=True):
        table.add_column(
            Text(column.label, overflow="fold"),
            justify=column.justify,
            width=width,
        )
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(
            *(
                Text(cell, no_wrap=True, overflow="ellipsis")
                if column.cut
                else Text(cell, overflow="fold")
                for cell, column in zip(cells, columns, strict=True)
            )
        )
    return table


def _printed(
    parts: Sequence[Table | Text], *, color: bool, width: int = _NO_LIMIT
) -> str:
    out = StringIO()
    console = Console(
        file=out,
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=not color,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        _environ={},  # width and colour are decided by the caller alone
    )
    for part in parts:
        console.print(part)
    lines = out.getvalue().splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)
