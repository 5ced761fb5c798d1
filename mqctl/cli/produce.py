"""mqctl produce: arguments, files or standard input into a topic."""

import base64
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mqctl.cli import inputs
from mqctl.cli.context import Context
from mqctl.cli.options import Size, Topic, command, flag
from mqctl.core.errors import BadData, BadUsage, Interrupted, MqError
from mqctl.core.headers import is_transport

if TYPE_CHECKING:
    from mqctl.engine.producer import Producer, Sent

InputForm = Literal["lines", "null", "raw", "json", "ndjson"]
Print = Literal["none", "id", "ndjson"]


@dataclass(slots=True)
class _Plan:
    """How input becomes messages."""

    form: InputForm
    delimiter: bytes
    key: bytes | None
    separator: bytes | None
    headers: dict[str, str]
    partition: int | None
    max_retries: int
    start_line: int
    max_bytes: int


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app, "produce")
    def produce(
        context: Context,
        topic: Topic,
        payloads: Annotated[
            list[str] | None,
            typer.Argument(
                help="Messages; @FILE is a file's content, - is standard input. "
                "With none: standard input.",
                metavar="[PAYLOAD]...",
                show_default=False,
            ),
        ] = None,
        input_form: Annotated[
            InputForm,
            flag(
                "--input",
                "-i",
                help="What the input is: lines, null (NUL-delimited), raw (all of it "
                "is one message), json (a JSON value per line), ndjson (envelopes).",
            ),
        ] = "lines",
        file: Annotated[
            list[str] | None,
            flag("--file", help="Read this file instead; repeatable.", metavar="PATH"),
        ] = None,
        delim: Annotated[
            str | None,
            flag(
                "--delim", "-D", help="Delimiter instead of a newline.", metavar="STR"
            ),
        ] = None,
        null: Annotated[
            bool, flag("--null", "-0", help="The same as -i null.")
        ] = False,
        key: Annotated[
            str | None, flag("--key", "-k", help="Key of every message.")
        ] = None,
        key_sep: Annotated[
            str | None,
            flag(
                "--key-sep",
                "-K",
                help="Split each line at the first STR: key, payload.",
                metavar="STR",
            ),
        ] = None,
        header: Annotated[
            list[str] | None,
            flag("--header", "-H", help="A header; repeatable.", metavar="NAME=VALUE"),
        ] = None,
        partition: Annotated[
            int | None,
            flag("--partition", "-p", help="The partition, whatever the key."),
        ] = None,
        partitions: Annotated[
            int, flag("--partitions", help="Partitions of a topic that is created.")
        ] = 1,
        no_create: Annotated[
            bool, flag("--no-create", help="Refuse a topic that does not exist (4).")
        ] = False,
        max_retries: Annotated[
            int, flag("--max-retries", help="Retries stored in each message.")
        ] = 3,
        batch: Annotated[
            int, flag("--batch", help="Messages in one pipelined batch.")
        ] = 500,
        max_len: Annotated[
            int,
            flag(
                "--max-len",
                help="Cut each partition to N entries on write, unread ones too; "
                "0 = never.",
                metavar="N",
            ),
        ] = 0,
        max_len_mode: Annotated[
            Literal["exact", "approx"],
            flag("--max-len-mode", help="How exactly --max-len cuts."),
        ] = "exact",
        start_line: Annotated[
            int, flag("--start-line", help="Skip the lines before this one.")
        ] = 1,
        max_bytes: Annotated[
            Size, flag("--max-bytes", help="Largest message accepted.")
        ] = "64MB",
        print_what: Annotated[
            Print,
            flag("--print", help="Print what was stored: its id, or a JSON object."),
        ] = "none",
    ) -> None:
        """Store messages in a topic.

        Exit 0 only when every accepted message is stored. When it fails half way it
        says what is stored, what is not and what nobody can know.

        Example: seq 1000 | mqctl produce demo --partitions 4
        """
        from mqctl.core.units import size_bytes
        from mqctl.engine.producer import (
            Producer,
            ProducerOptions,
        )

        largest = size_bytes(max_bytes)
        options = ProducerOptions(
            partitions=partitions,
            create=not no_create,
            max_retries=max_retries,
            max_len=max_len,
            max_len_exact=max_len_mode == "exact",
            batch=batch,
            max_bytes=largest,
        )
        plan = _Plan(
            form="null" if null else input_form,
            delimiter=_delimiter(delim, null=null or input_form == "null"),
            key=None if key is None else os.fsencode(key),
            separator=None if key_sep is None else os.fsencode(key_sep),
            headers=_headers(header or []),
            partition=partition,
            max_retries=max_retries,
            start_line=start_line,
            max_bytes=largest,
        )
        _check(plan)
        name = context.topic(topic)
        files = [inputs.open_file(path) for path in file or []]
        if not files and not payloads:
            files = [_stdin(context)]
        for text in payloads or []:
            if text.startswith("@"):
                inputs.check_file(text[1:])
        if partition is not None:
            _check_partition(context, name, partition, partitions)
        producer = Producer(
            context.session(), name, options, report=_report(context, name, print_what)
        )
        if partitions not in (1, producer.partitions):
            context.note(
                f"topic {name} exists with {producer.partitions} partitions; "
                f"--partitions {partitions} changes nothing"
            )
        _run(context, producer, plan, payloads or [], files)


def _check_partition(context: Context, topic: str, index: int, count: int) -> None:
    """Refuse a partition that a topic not there yet would not have."""
    from mqctl.engine import topics

    if not 0 <= index < count and not topics.exists(context.session(), topic):
        raise BadUsage(
            f"partition {index} is out of range: topic {topic} does not exist and "
            f"would have {count}",
            hint=f"--partitions {index + 1}" if index >= 0 else None,
            topic=topic,
            partition=index,
        )


def _delimiter(delim: str | None, *, null: bool) -> bytes:
    if null:
        return b"\0"
    if delim is None:
        return b"\n"
    raw = os.fsencode(delim)
    for escape, byte in ((b"\\n", b"\n"), (b"\\t", b"\t"), (b"\\0", b"\0")):
        raw = raw.replace(escape, byte)
    if not raw:
        raise BadUsage("the delimiter is empty")
    return raw


def _headers(given: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for text in given:
        name, found, value = text.partition("=")
        if not found or not name:
            raise BadUsage(f"not a header: {text}", hint="write it -H NAME=VALUE")
        if is_transport(name):
            raise BadUsage(f"header {name} is reserved: it belongs to the queue")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BadUsage(f"header {name!a} is not valid UTF-8") from None
        headers[name] = value
    return headers


def _check(plan: _Plan) -> None:
    if plan.key is not None and plan.separator is not None:
        raise BadUsage("--key and --key-sep exclude each other")
    if plan.separator == b"":
        raise BadUsage("the key separator is empty")
    if plan.form == "ndjson" and (plan.key is not None or plan.separator is not None):
        raise BadUsage("envelopes carry their own keys: leave out --key and --key-sep")
    if plan.start_line < 1:
        raise BadUsage("lines are counted from 1")


def _run(
    context: Context,
    producer: "Producer",
    plan: _Plan,
    arguments: list[str],
    files: list[int],
) -> None:
    line = 0
    try:
        if arguments:
            _arguments(producer, plan, arguments)
        elif plan.form == "raw":
            for number, fd in enumerate(files, 1):
                payload = inputs.whole(fd, plan.max_bytes)
                _one(producer, plan, payload, number)
        else:
            for fd in files:
                line = _feed(producer, plan, fd, line)
        producer.drain()
    except KeyboardInterrupt:
        _account(producer, Interrupted("interrupted"), quietly=False)
        raise
    except MqError as error:
        raise _explained(producer, error) from error
    if not producer.tally.stored:
        context.note("the input was empty: nothing stored")
    elif context.verbose:
        context.note(f"{producer.tally.stored} messages stored")


def _stdin(context: Context) -> int:
    fd = inputs.standard()
    if os.isatty(fd):
        context.note("reading messages from the terminal, one per line; Ctrl-D ends")
    return fd


def _arguments(producer: "Producer", plan: _Plan, arguments: list[str]) -> None:
    number = 0
    for text in arguments:
        if text == "-":
            number = _feed(producer, plan, inputs.standard(), number)
            continue
        number += 1
        if text.startswith("@"):
            fd = inputs.open_file(text[1:])
            try:
                payload = inputs.whole(fd, plan.max_bytes)
            finally:
                os.close(fd)
        else:
            payload = os.fsencode(text)
        _one(producer, plan, payload, number)


def _feed(producer: "Producer", plan: _Plan, fd: int, before: int) -> int:
    """Send the records of one input; return the number of the last line."""
    records = inputs.Records(fd, plan.delimiter, plan.max_bytes)
    simple = plan.form in {"lines", "null"} and plan.separator is None
    line = before
    waiting = False
    for block in records:
        if not block:
            if waiting:
                producer.drain()
                waiting = False
            continue
        waiting = True
        producer.tick()
        skip = max(0, min(len(block), plan.start_line - 1 - line))
        line += skip
        if simple:
            add, key, headers = producer.add, plan.key, plan.headers
            for payload in block[skip:]:
                line += 1
                add(payload, key, headers, plan.partition, plan.max_retries, line)
        else:
            for payload in block[skip:]:
                line += 1
                _one(producer, plan, payload, line)
    return line


def _one(producer: "Producer", plan: _Plan, raw: bytes, line: int) -> None:
    if plan.form == "ndjson":
        _envelope(producer, plan, raw, line)
        return
    key, payload = plan.key, raw
    if plan.separator is not None:
        first, found, rest = raw.partition(plan.separator)
        if not found:
            separator = plan.separator.decode("utf-8", "replace")
            raise BadData(f"line {line} has no key separator {separator!r}", line=line)
        key, payload = first, rest
    if plan.form == "json":
        _check_json(payload, line)
    producer.add(payload, key, plan.headers, plan.partition, plan.max_retries, line)


def _check_json(payload: bytes, line: int) -> None:
    import orjson

    try:
        orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise BadData(
            f"line {line} is not JSON: {error.msg} (byte {error.pos + 1})", line=line
        ) from None


def _envelope(producer: "Producer", plan: _Plan, raw: bytes, line: int) -> None:
    from dataclasses import replace

    from mqctl.codecs import envelope

    message = envelope.decode(raw, line)
    headers = {**message.headers, **plan.headers} if plan.headers else message.headers
    producer.send(replace(message, headers=headers, partition=plan.partition))


def _report(
    context: Context, topic: str, what: Print
) -> "Callable[[list[Sent]], None] | None":
    if what == "none":
        return None

    def ids(sent: "list[Sent]") -> None:
        stored = [s.id for s in sent if s.id is not None]
        context.out.write("".join(f"{entry_id}\n" for entry_id in stored).encode())

    def objects(sent: "list[Sent]") -> None:
        context.out.write(b"".join(_objects(topic, sent)))

    return ids if what == "id" else objects


def _objects(topic: str, sent: "list[Sent]") -> Iterator[bytes]:
    from mqctl.render.notes import json_bytes

    for one in sent:
        key, encoded = _key(one.key)
        record: dict[str, object] = {
            "line": one.line,
            "status": one.status,
            "topic": topic,
            "partition": one.partition,
            "id": one.id,
            "key": key,
            "ts_ms": one.ts_ms,
        }
        if encoded is not None:
            record["key_b64"] = encoded
        if one.error is not None:
            record["error"] = one.error
        if one.receipt is not None:
            record["receipt"] = one.receipt
        yield json_bytes(record) + b"\n"


def _key(key: bytes | None) -> tuple[str | None, str | None]:
    """Return a key as text, or in base64 when it is none, as in the envelope."""
    if key is None:
        return None, None
    try:
        return key.decode(), None
    except UnicodeDecodeError:
        return None, base64.b64encode(key).decode()


def _explained(producer: "Producer", error: MqError) -> MqError:
    """Finish what is in flight and add the account of the run to the error."""
    if error is not producer.tally.cause:
        try:
            producer.drain()
        except MqError as later:
            if later.exit == 75 or not isinstance(error, BadData):  # noqa: PLR2004
                error = later
    return _account(producer, error, quietly=True)


def _account(producer: "Producer", error: MqError, *, quietly: bool) -> MqError:
    from mqctl.engine.producer import ranges

    tally = producer.tally
    given = error.facts.get("line")
    resume = tally.first_missing or producer.first_unsent or given
    parts = [f"{tally.stored} stored"]
    if tally.failed:
        parts.append(f"{len(tally.failed)} not stored")
    if tally.unknown:
        parts.append(f"{len(tally.unknown)} unknown")
    where = f"line {given}"
    if isinstance(given, int) and where not in error.message:
        error.message = f"{where}: {error.message}"
    error.message = f"{error.message}; {', '.join(parts)}"
    error.facts |= {"stored": tally.stored}
    if tally.failed:
        error.facts["not_stored"] = ranges([line for line, _ in tally.failed])
    if tally.unknown:
        error.facts["unknown"] = ranges(tally.unknown)
    if isinstance(resume, int) and (tally.stored or tally.unknown):
        error.facts["resume_line"] = resume
        again = tally.stored_after
        twice = f" ({again} lines after it are stored already)" if again else ""
        resuming = f"go on with --start-line {resume}{twice}"
        error.hint = f"{error.hint}; {resuming}" if error.hint else resuming
    if not quietly:
        sys.stderr.write(f"mqctl: {error.message}\n")
    return error
