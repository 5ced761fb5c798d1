import csv
import io
import json
from dataclasses import replace

import pytest

from mqctl.core.message import DeadLetter, Death, Delivery, Message
from mqctl.render.messages import (
    MessageFormat,
    message_line,
    message_writer,
    template_writer,
)
from mqctl.render.template import Item, compile_template

STAMP = "2023-11-14T22:13:20.000Z"
FIRST = Message("orders", 3, "5-0", b"hello", b"k1", {}, STAMP, 1_700_000_000_000)
SECOND = replace(FIRST, id="6-0", payload=b'\xff,"\r\n', key=None)
DELIVERIES = [Delivery(m, "g", "c", 1, 1, 5) for m in (FIRST, SECOND)]


def written(output: MessageFormat, items: list[Item], **options: bool) -> bytes:
    writer = message_writer(output, **options)  # type: ignore[arg-type]
    return b"".join(
        [writer.begin(), *(writer.batch([item]) for item in items), writer.end()]
    )


def test_raw_is_payload_and_delimiter() -> None:
    assert written("raw", [FIRST, SECOND]) == b'hello\n\xff,"\r\n\n'
    assert message_writer("raw", delimiter=b"\0").batch([FIRST, FIRST]) == (
        b"hello\0hello\0"
    )


def test_ndjson_is_one_envelope_per_line() -> None:
    lines = written("ndjson", [*DELIVERIES]).split(b"\n")
    assert [json.loads(line)["id"] for line in lines[:-1]] == ["5-0", "6-0"]
    assert lines[-1] == b""


def test_the_options_of_the_envelope_are_passed_on() -> None:
    item = Delivery(replace(FIRST, payload=b"{}"), "g", "c", 1, 1, 5)
    assert written("ndjson", [item], receipt=True, json_payload=True).endswith(
        b'"deliveries":1,"group":"g","consumer":"c",'
        b'"receipt":"r1:orders:3:5-0:g:c:1","payload_json":{}}\n'
    )


def test_json_is_one_array() -> None:
    assert [row["id"] for row in json.loads(written("json", [*DELIVERIES]))] == [
        "5-0",
        "6-0",
    ]
    assert json.loads(written("json", [FIRST]))[0]["payload"] == "hello"
    assert written("json", []) == b"[]\n"


def test_csv_reads_back_with_bytes_in_base64() -> None:
    text = written(
        "csv", [FIRST, SECOND, replace(FIRST, payload=b'a\rb"\n', key=b"\xff")]
    )
    rows = list(csv.DictReader(io.StringIO(text.decode(), newline="")))
    assert text.startswith(
        b"topic,partition,id,timestamp,ts_ms,key,attempt,payload,payload_b64,key_b64\n"
        b"orders,3,5-0,2023-11-14T22:13:20.000Z,1700000000000,k1,1,hello,,\n"
    )
    assert (rows[1]["payload"], rows[1]["payload_b64"]) == ("", "/ywiDQo=")
    assert (rows[2]["payload"], rows[2]["key_b64"]) == ('a\rb"\n', "/w==")


def test_none_writes_nothing() -> None:
    assert written("none", [FIRST]) == b""


def test_a_template_is_written_for_each() -> None:
    writer = template_writer(compile_template("%o;"))
    assert writer.begin() + writer.batch(DELIVERIES) + writer.end() == b"5-0;6-0;"


@pytest.mark.parametrize(
    ("item", "line"),
    [
        (FIRST, "[3] 5-0 k1 | hello"),
        (SECOND, '[3] 5-0 - | \\xff,"\\r\\n'),
        (replace(FIRST, key=b"", payload=b""), '[3] 5-0 "" | '),
        (
            replace(
                FIRST,
                key=b"\x1b]0;x\x07",
                payload="[bold]x[/bold] [/tmp/x] 日本".encode(),
            ),
            "[3] 5-0 \\x1b]0;x\\x07 | [bold]x[/bold] [/tmp/x] 日本",
        ),
        (
            DeadLetter(FIRST, Death("poi\x1bson"), 5, None, True, "json"),
            "[3] 5-0 k1 (poi\\x1bson) | hello",
        ),
    ],
)
def test_a_message_is_one_readable_line(item: Item, line: str) -> None:
    assert message_line(item).replace("6-0", "5-0") == line


def test_the_topic_is_shown_when_there_are_several() -> None:
    item = replace(FIRST, topic="a\nb")
    assert message_line(item, show_topic=True) == "a\\nb [3] 5-0 k1 | hello"


def test_colour_only_dims_the_place() -> None:
    assert message_line(FIRST, color=True) == "\x1b[2m[3] 5-0\x1b[0m k1 | hello"
    assert written("table", [FIRST]) == b"[3] 5-0 k1 | hello\n"


@pytest.mark.parametrize("columns", ["20", "40", "200"])
@pytest.mark.parametrize("output", ["raw", "ndjson", "json", "csv"])
def test_machine_output_does_not_know_the_terminal(
    output: MessageFormat, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = replace(FIRST, payload=b"word " * 100, key=b"[bold]x[/bold]")
    expected = written(output, [item])
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert written(output, [item], color=True) == expected
    assert b"word " * 100 in expected
