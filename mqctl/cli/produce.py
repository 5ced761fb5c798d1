"""mqctl produce: arguments, files or standard input into a topic."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mqctl.cli import inputs
from mqctl.cli.account import Print, finished, reporter, skip_reporter
from mqctl.cli.context import Context
from mqctl.cli.feeding import Feeder, InputForm, Plan, done_lines, stdin
from mqctl.cli.options import Duration, Size, Topic, command, flag
from mqctl.cli.signals import interruptible
from mqctl.core.errors import BadData, BadUsage, MqError, Partial
from mqctl.core.headers import is_transport

if TYPE_CHECKING:
    from mqctl.engine.producer import Producer
    from mqctl.engine.special import Special


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
                "is one message), json (a JSON value per line), ndjson (envelopes), "
                "csv.",
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
        payload_ttl: Annotated[
            Duration,
            flag(
                "--payload-ttl",
                help="Life of bodies stored aside, read or not; 0 = they stay.",
            ),
        ] = "0",
        delay: Annotated[
            Duration | None,
            flag("--delay", help="Deliver them this much later."),
        ] = None,
        at: Annotated[
            str | None,
            flag("--at", help="Deliver them at this time.", metavar="TIME"),
        ] = None,
        dedupe_key: Annotated[
            str | None,
            flag(
                "--dedupe-key",
                help="Count, do not store, a second message with this key; "
                "header:NAME takes each message's header.",
                metavar="STR|header:NAME",
            ),
        ] = None,
        dedupe_ttl: Annotated[
            Duration, flag("--dedupe-ttl", help="How long a dedupe key is remembered.")
        ] = "24h",
        keep_partition: Annotated[
            bool,
            flag("--keep-partition", help="With -i ndjson: the envelope's partition."),
        ] = False,
        on_error: Annotated[
            Literal["stop", "skip"],
            flag("--on-error", help="At a bad line: stop (65), or skip and exit 3."),
        ] = "stop",
        empty: Annotated[
            Literal["send", "skip"],
            flag("--empty", help="What to do with empty lines."),
        ] = "send",
        resume: Annotated[
            str | None,
            flag(
                "--resume",
                help="Send what an earlier --print ndjson does not list as stored.",
                metavar="FILE",
            ),
        ] = None,
        rate: Annotated[
            str | None, flag("--rate", help="At most so many messages.", metavar="N/s")
        ] = None,
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
        from mqctl.core import units
        from mqctl.engine.producer import Producer, ProducerOptions

        largest = units.size_bytes(max_bytes)
        options = ProducerOptions(
            partitions=partitions,
            create=not no_create,
            max_retries=max_retries,
            max_len=max_len,
            max_len_exact=max_len_mode == "exact",
            batch=batch,
            max_bytes=largest,
            payload_ttl_ms=units.duration_ms(payload_ttl),
        )
        form: InputForm = "null" if null else input_form
        plan = Plan(
            form=form,
            delimiter=_delimiter(delim, null=form == "null"),
            max_retries=max_retries,
            max_bytes=largest,
            key=None if key is None else os.fsencode(key),
            separator=None if key_sep is None else os.fsencode(key_sep),
            headers=_headers(header or []),
            partition=partition,
            keep_partition=keep_partition,
            start_line=start_line,
            skip_bad=on_error == "skip",
            skip_empty=empty == "skip",
            dedupe=dedupe_key,
            special=_special(context, dedupe_key, dedupe_ttl, delay, at),
            rate=units.rate(rate) if rate else 0.0,
            done=done_lines(resume) if resume else bytearray(),
        )
        _check(plan)
        name = context.topic(topic)
        source = _source(context, payloads or [], file or [])
        if partition is not None:
            _check_partition(context, name, partition, partitions)
        report = reporter(context, name, print_what)
        producer = Producer(context.session(), name, options, report=report)
        if partitions not in (1, producer.partitions):
            context.note(
                f"topic {name} exists with {producer.partitions} partitions; "
                f"--partitions {partitions} changes nothing"
            )
        if options.payload_ttl_ms:
            context.note("large bodies expire, whether they were read by then or not")
        _run(context, producer, plan, source, skip_reporter(context, name, print_what))


@dataclass(frozen=True, slots=True)
class _Source:
    """Where messages come from: arguments, else files, else standard input."""

    arguments: list[str]
    files: list[int]


def _source(context: Context, texts: list[str], paths: list[str]) -> _Source:
    """Find the input; NoInput or BadUsage before anything is done."""
    files = [inputs.open_file(path) for path in paths]
    if not files and not texts:
        files = [stdin(context)]
    for text in texts:
        if text.startswith("@"):
            inputs.check_file(text[1:])
    return _Source(texts, files)


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


def _special(
    context: Context,
    dedupe_key: str | None,
    dedupe_ttl: str,
    delay: str | None,
    at: str | None,
) -> "Special | None":
    if dedupe_key is None and delay is None and at is None:
        return None
    from mqctl.core.units import duration_ms
    from mqctl.engine.special import Later, Special

    if delay is not None and at is not None:
        raise BadUsage("--delay and --at exclude each other")
    if dedupe_key in {"", "header:"}:
        raise BadUsage("the deduplication key is empty")
    ttl = duration_ms(dedupe_ttl)
    if ttl < 1:
        raise BadUsage("--dedupe-ttl must be more than 0")
    later = None
    if delay is not None and duration_ms(delay) > 0:
        later = Later(delay_ms=duration_ms(delay))
    if at is not None:
        due = _moment(at)
        later = Later(due_ms=due) if due > context.session().clock.now_ms() else None
    return Special(dedupe_ttl_ms=ttl, later=later)


def _moment(text: str) -> int:
    """Read a time: `@MS`, or RFC 3339 with or without the `@`."""
    from mqctl.core.positions import parse_position

    position = parse_position(text if text.startswith("@") else f"@{text}", 0)
    return int(position.first.partition("-")[0])


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
            raise BadUsage(f"header {name} is not valid UTF-8") from None
        headers[name] = value
    return headers


def _check(plan: Plan) -> None:
    if plan.key is not None and plan.separator is not None:
        raise BadUsage("--key and --key-sep exclude each other")
    if plan.separator == b"":
        raise BadUsage("the key separator is empty")
    own = plan.form in {"ndjson", "csv"}
    if own and (plan.key is not None or plan.separator is not None):
        raise BadUsage(
            f"{plan.form} input carries its own keys: leave out --key and --key-sep"
        )
    if plan.keep_partition and plan.form != "ndjson":
        raise BadUsage("--keep-partition goes with -i ndjson")
    if plan.start_line < 1:
        raise BadUsage("lines are counted from 1")


def _run(
    context: Context,
    producer: "Producer",
    plan: Plan,
    source: _Source,
    on_skip: Callable[[BadData], None],
) -> None:
    """Send everything; Partial when bad lines were skipped."""
    with interruptible() as interrupt:
        feeder = Feeder(producer, plan, interrupt, on_skip)
        try:
            _feed(feeder, plan, source)
            producer.drain()
        except MqError as error:
            raise finished(producer, error) from error
        except BrokenPipeError:
            stored = producer.tally.stored
            context.note(f"the reader of the output left: at least {stored} stored")
            raise
    tally = producer.tally
    if tally.delayed:
        _warn_unmoved(context, producer)
    if feeder.skipped:
        done = f"{tally.stored + tally.delayed} stored"
        raise Partial(f"{feeder.skipped} bad lines skipped, {done}")
    if not (tally.stored or tally.delayed or tally.duplicates):
        context.note("the input was empty: nothing stored")
    elif context.verbose or tally.duplicates:
        context.note(f"{tally.stored} messages stored, {tally.duplicates} duplicates")


def _warn_unmoved(context: Context, producer: "Producer") -> None:
    from mqctl.engine.special import is_moved

    if not is_moved(context.session(), producer.topic, producer.partitions):
        context.note(
            f"nobody consumes {producer.topic} now: delayed messages wait until "
            "somebody does"
        )


def _feed(feeder: Feeder, plan: Plan, source: _Source) -> None:
    if source.arguments:
        feeder.arguments(source.arguments)
        return
    line = 0
    for number, fd in enumerate(source.files, 1):
        if plan.form == "raw":
            feeder.whole(fd, number)
        else:
            line = feeder.records(fd, line)
