import csv
import io
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from rich.cells import cell_len

from mqctl.core.errors import BadUsage
from mqctl.render import table
from mqctl.render.records import Record, RecordFormat, write_records

NOW = 1_700_000_000_000
ROWS: list[Record] = [
    {"topic": "a", "length": 1_234_567, "last_id": None, "owners": {"0": None}},
    {"topic": '[bold]x[/bold],"\r\n', "length": 0, "last_id": "5-0", "owners": {}},
]


def written(
    records: list[Record],
    output: RecordFormat,
    columns: tuple[str, ...] = (),
    *,
    single: bool = False,
    width: int | None = None,
    color: bool = False,
    now_ms: int | None = NOW,
) -> str:
    out = io.BytesIO()
    write_records(
        records,
        output,
        out,
        columns=columns,
        single=single,
        width=width,
        color=color,
        now_ms=now_ms,
    )
    return out.getvalue().decode()


# For machines


def test_ndjson_has_exactly_the_fields_in_their_order() -> None:
    assert written(ROWS, "ndjson", ("length", "topic")) == (
        '{"length":1234567,"topic":"a"}\n'
        '{"length":0,"topic":"[bold]x[/bold],\\"\\r\\n"}\n'
    )
    assert json.loads(written(ROWS, "ndjson").split("\n")[0]) == ROWS[0]


def test_ndjson_is_written_as_the_records_come() -> None:
    out = io.BytesIO()

    def records() -> Iterator[Record]:
        yield ROWS[0]
        assert out.getvalue().endswith(b"}\n")

    write_records(records(), "ndjson", out)


def test_a_missing_field_is_a_bug() -> None:
    with pytest.raises(KeyError):
        written(ROWS, "ndjson", ("topic", "nothing"))


def test_json_is_one_document() -> None:
    assert json.loads(written(ROWS, "json")) == ROWS
    assert json.loads(written(ROWS[:1], "json", single=True)) == ROWS[0]


def test_csv_reads_back_with_nested_objects_as_json() -> None:
    rows = list(csv.reader(io.StringIO(written(ROWS, "csv"), newline="")))
    assert rows == [
        ["topic", "length", "last_id", "owners"],
        ["a", "1234567", "", '{"0":null}'],
        ['[bold]x[/bold],"\r\n', "0", "5-0", "{}"],
    ]
    assert written([{"a": True, "b": [1, 2]}], "csv") == 'a,b\ntrue,"[1,2]"\n'


@pytest.mark.parametrize(
    ("output", "text"),
    [("ndjson", ""), ("json", "[]\n"), ("csv", ""), ("table", ""), ("none", "")],
)
def test_no_records_are_no_output(output: RecordFormat, text: str) -> None:
    assert written([], output, ("topic",)) == text


def test_none_writes_nothing() -> None:
    assert written(ROWS, "none") == ""


def test_records_have_no_payload_to_write_raw() -> None:
    with pytest.raises(BadUsage):
        written(ROWS, "raw")


@pytest.mark.parametrize("output", ["ndjson", "json", "csv"])
@pytest.mark.parametrize("columns", ["20", "40", "200"])
def test_machine_output_does_not_know_the_terminal(
    output: RecordFormat, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    records: list[Record] = [{"name": "long word " * 50, "x": "\x1b[31m:smile: [0]"}]
    expected = written(records, output)
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert written(records, output, width=int(columns), color=True) == expected
    assert "long word " * 50 in expected


def test_machine_output_does_not_load_rich() -> None:
    code = (
        "import sys; from mqctl.render import records, messages, template, notes\n"
        "records.write_records([{'a': 1}], 'ndjson', sys.stdout.buffer)\n"
        "assert not [name for name in sys.modules if name.startswith('rich')]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True
    )
    assert (done.stdout, done.stderr) == (b'{"a":1}\n', b"")


# For people

GROUPS: list[Record] = [
    {
        "topic": "orders",
        "group": group,
        "partitions": 4,
        "owned": 4,
        "members": 2,
        "consumers": 3,
        "pending": pending,
        "oldest_pending_ms": 184_250,
        "lag": lag,
        "lag_ms": 3_723_000,
        "finished": 1_234_567,
        "last_ack_at": "2023-11-14T22:11:16.544Z",
        "last_ack_at_ms": NOW - 123_456,
        "active": True,
    }
    for group, pending, lag in [("billing", 0, 0), ("日本 [urgent]", 12_345, None)]
]


def test_a_table_fits_wide_terminals() -> None:
    assert written(GROUPS, "table", ("group", "pending", "lag"), width=80) == (
        "group          pending  lag\n"
        "───────────────────────────\n"
        "billing              0    0\n"
        "日本 [urgent]   12,345    -\n"
    )


def test_what_is_the_same_in_all_rows_is_said_once_when_space_is_short() -> None:
    text = written(GROUPS, "table", width=80)
    assert text.split("\n")[0].startswith("topic: orders  partitions: 4")
    assert max(map(cell_len, text.split("\n"))) <= 80
    assert "12,345" in text
    assert "topic:" not in written(GROUPS, "table", width=200)


def test_what_fits_in_no_way_is_listed_by_name_and_value() -> None:
    text = written(GROUPS, "table", width=25)
    assert text.count("last ack at     2m3s ago\n") == 2
    assert max(map(cell_len, text.split("\n"))) <= 25


def test_a_table_in_a_pipe_is_never_cut() -> None:
    records: list[Record] = [{"id": "5-0", "detail": "word " * 100 + "end"}]
    assert "word " * 100 + "end" in written(records, "table", width=None)


def test_long_texts_are_cut_and_ids_stay_whole() -> None:
    records: list[Record] = [
        {
            "id": f"170000000000{i}-0",
            "last_id": f"180000000000{i}-0",
            "detail": "x" * 99,
        }
        for i in range(2)
    ]
    lines = written(records, "table", width=60).split("\n")
    assert lines[2] == f"1700000000000-0  1800000000000-0  {'x' * 25}…"
    assert "1700000000000-0" in written(records, "table", width=10)


def test_times_and_durations_are_shown_once_and_short() -> None:
    record: Record = {
        "due_at": "2023-11-14T22:13:24.000Z",
        "due_at_ms": NOW + 4000,
        "due_in_ms": 4000,
        "lag": 5,
        "lag_ms": 93_784_000,
        "seen_at": None,
        "seen_at_ms": None,
    }
    assert written([record], "table", single=True) == (
        "due at    in 4s\ndue in    4s\nlag       5\nlag time  1d2h\nseen at   -\n"
    )
    assert "due at    2023-11-14T22:13:24.000Z\n" in written(
        [record], "table", single=True, now_ms=None
    )


def test_one_record_is_names_and_values() -> None:
    record: Record = {
        "topic": "orders",
        "dry_run": False,
        "length": 1_234_567,
        "pid": 12_345,
        "ratio": 0.98765,
        "messages_per_s": 123_456.789,
        "groups": ["a", "b\x1b"],
        "kept": [],
        "owners": {"0": "c1", "1": None},
        "deep": {"a": [1]},
        "partitions": [{"partition": 0, "first_id_after": "1700000000000-0"}],
    }
    assert written([record], "table", single=True, width=80) == (
        "topic           orders\n"
        "dry run         no\n"
        "length          1,234,567\n"
        "pid             12345\n"
        "ratio           0.988\n"
        "messages per s  123,456.79\n"
        "groups          a, b\\x1b\n"
        "kept            -\n"
        "owners          0: c1, 1: -\n"
        'deep            {"a":[1]}\n'
        "partitions      partition  first id after\n"
        "                ──────────────────────────\n"
        "                        0  1700000000000-0\n"
    )


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("color", [True, False])
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("[bold]x[/bold]", "[bold]x[/bold]"),
        ("[urgent]", "[urgent]"),
        ("[/tmp/x]", "[/tmp/x]"),
        ("[0] :smile:", "[0] :smile:"),
        ("a\x1b[2Jb\x07", "a\\x1b[2Jb\\x07"),
        ("a\nb", "a\\nb"),
        ("a\u202eb", "a\\u202eb"),
        ("\udcff", "\\xff"),
        ("日本 🙂", "日本 🙂"),
    ],
)
def test_data_is_shown_literally(
    value: str, shown: str, single: bool, color: bool
) -> None:
    records: list[Record] = [{"topic": value, "payload_start": value, value: 1}]
    text = written(records, "table", single=single, width=120, color=color)
    assert text.count(shown) == 3
    if not color:
        assert "\x1b" not in text


def test_colour_is_only_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1m" in written(ROWS, "table", width=80, color=True)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "20")
    assert "\x1b" not in written(ROWS, "table", width=80, color=False)
    assert written(ROWS, "table", width=80).count("\n") == 4


def test_a_table_that_is_too_wide_keeps_the_brief_columns() -> None:
    records: list[dict[str, object]] = [
        {"topic": f"t{n}", "stream": "s" * 40, "lag": n, "last_id": f"{10**12 + n}-0"}
        for n in range(2)
    ]
    wide = table.rows(records, 100, brief=["topic", "lag"]).splitlines()
    narrow = table.rows(records, 40, brief=["topic", "lag"]).splitlines()
    assert wide[0].split() == ["topic", "stream", "lag", "last", "id"]
    assert narrow[0].split() == ["topic", "lag"]
    assert [line.split() for line in narrow[2:]] == [["t0", "0"], ["t1", "1"]]
