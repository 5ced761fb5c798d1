"""mqctl tail: the last messages of topics, and those that come."""

import os
import select
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from mqctl.cli.context import Context, at_least
from mqctl.cli.options import command, flag, switch
from mqctl.cli.records import Form
from mqctl.core.errors import BadUsage

if TYPE_CHECKING:
    from mqctl.core.positions import Position
    from mqctl.engine.tail import Item, Reader, Source
    from mqctl.render.messages import MessageWriter

_BATCH = 100  # messages written at once
_LAST = 10
Topics = Annotated[list[str], typer.Argument(help="The topics.", metavar="TOPIC...")]
MessageForm = Annotated[
    Form | None,
    flag(
        "--output",
        "-o",
        help="raw, ndjson, json, csv, table or none.",
        show_default="table on a terminal, else raw",
    ),
]
EnvelopeForm = Annotated[
    Form | None,
    flag(
        "--output",
        "-o",
        help="ndjson, json, csv, raw, table or none.",
        show_default="table on a terminal, else ndjson",
    ),
]
Format = Annotated[
    str | None,
    flag("--format", "-F", help="Format string, such as '%p %o %k: %s\\n'."),
]
Delim = Annotated[str, flag("--delim", "-D", help="After each payload of -o raw.")]
JsonPayload = Annotated[
    bool, flag("--json-payload", help="Embed JSON payloads as they are.")
]
WhereKey = Annotated[
    str | None,
    switch("--where-key", help="Only messages whose key matches.", metavar="GLOB"),
]
WhereHeader = Annotated[
    list[str] | None,
    switch(
        "--where-header",
        help="Only messages with such a header; repeatable.",
        metavar="NAME=GLOB",
    ),
]


@dataclass(slots=True)
class Messages:
    """Standard output for messages, in the format asked for."""

    context: Context
    writer: "MessageWriter"

    def write(self, items: Iterable["Item"]) -> None:
        """Write a whole document of them."""
        self.begin()
        self.add(items)
        self.end()

    def begin(self) -> None:
        """Write what stands before the first."""
        self._write(self.writer.begin())

    def add(self, items: Iterable["Item"]) -> None:
        """Write items as they come, some at a time."""
        source = iter(items)
        while part := list(islice(source, _BATCH)):
            self._write(self.writer.batch(part))

    def end(self) -> None:
        """Write what closes the document."""
        self._write(self.writer.end())

    def _write(self, data: bytes) -> None:
        if data:
            self.context.out.write(data)


def messages(
    context: Context,
    output: Form | None,
    format_string: str | None,
    *,
    default: Form,
    delim: str = "\n",
    json_payload: bool = False,
    show_topic: bool = False,
) -> Messages:
    """Return what writes messages; `default` is the format off a terminal."""
    from mqctl.render.messages import message_writer, template_writer
    from mqctl.render.template import compile_template

    if format_string is not None:
        return Messages(context, template_writer(compile_template(format_string)))
    writer = message_writer(
        output or ("table" if context.out.isatty else default),
        delimiter=os.fsencode(delim.replace("\\n", "\n").replace("\\0", "\0")),
        json_payload=json_payload,
        show_topic=show_topic,
        color=context.terminal().color,
    )
    return Messages(context, writer)


def position(context: Context, text: str) -> "Position":
    """Read a position; times ago are counted by the server's clock."""
    from mqctl.core.positions import parse_position

    return parse_position(text, context.session().clock.now_ms())


def partition_list(text: str | None) -> tuple[int, ...]:
    """Read a list of partitions such as 0,2,4-7; none for no list."""
    found: set[int] = set()
    for part in text.split(",") if text is not None else ():
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise BadUsage(f"not a list of partitions: {text}", hint="-p 0,2,4-7")
        end = int(last) if dash else int(first)
        if end - int(first) > 100_000:  # noqa: PLR2004 - a slip of the finger
            raise BadUsage(f"not a list of partitions: {text}")
        found.update(range(int(first), end + 1))
    return tuple(sorted(found))


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app, "tail")
    def tail(
        context: Context,
        topics: Topics,
        count: Annotated[
            int | None,
            switch(
                "--lines",
                "-n",
                help="How many, over all partitions.",
                show_default="10; all with --from",
            ),
        ] = None,
        follow: Annotated[
            bool, switch("--follow", "-f", help="Go on with what is appended.")
        ] = False,
        first: Annotated[
            str | None,
            switch(
                "--from",
                help="Where to begin: start, end, an id, @TIME, -2h, last:N.",
                metavar="POS",
            ),
        ] = None,
        to: Annotated[
            str | None, switch("--to", help="Where to end.", metavar="POS")
        ] = None,
        partition: Annotated[
            str | None,
            switch("--partition", "-p", help="Only these partitions.", metavar="LIST"),
        ] = None,
        where_key: WhereKey = None,
        where_header: WhereHeader = None,
        grep: Annotated[
            str | None,
            switch(
                "--grep", help="Only payloads in which this is found.", metavar="RE"
            ),
        ] = None,
        dlq: Annotated[
            bool, switch("--dlq", help="Look at the dead letters instead.")
        ] = False,
        output: MessageForm = None,
        format_string: Format = None,
        delim: Delim = "\n",
        json_payload: JsonPayload = False,
    ) -> None:
        """Show the last messages of topics; joins no group, changes nothing.

        Example: mqctl tail orders -n 20 -f
        """
        from mqctl.core.filters import make_filter
        from mqctl.engine import tail as engine

        if follow and to is not None:
            raise BadUsage("--follow has no end, so --to makes no sense with it")
        if dlq and partition is not None:
            raise BadUsage("dead letters have no partitions; leave -p out")
        wanted = make_filter(where_key, where_header or (), grep)
        chosen = partition_list(partition)
        names = list(dict.fromkeys(context.topic(name) for name in topics))
        session = context.session()
        streams = [
            source
            for name in names
            for source in engine.sources(session, name, chosen, dead=dlq)
        ]
        reader = engine.Reader(session, context.warn, wanted)
        out = messages(
            context,
            output,
            format_string,
            default="raw",
            delim=delim,
            json_payload=json_payload,
            show_topic=len(names) > 1,
        )
        window = _window(context, count, first, to)
        out.begin()
        try:
            if follow:
                _follow(out, reader, streams, window, grows=not (dlq or chosen))
            else:
                _show(out, reader, streams, window)
        except KeyboardInterrupt:
            out.end()
            raise
        out.end()


@dataclass(frozen=True, slots=True)
class _Window:
    """The part of the streams to show: between two ids, the last `count` if given."""

    count: int | None
    first: str
    to: str


def _window(
    context: Context, count: int | None, first: str | None, to: str | None
) -> _Window:
    if count is not None:
        at_least("-n", count, 0)
    end = "+" if to is None else position(context, to).to
    if first is None:
        return _Window(_LAST if count is None else count, "-", end)
    begin = position(context, first)
    if begin.last is not None:
        count = begin.last if count is None else min(count, begin.last)
    return _Window(count, begin.first, end)


def _show(
    out: Messages,
    reader: "Reader",
    streams: Sequence["Source"],
    window: _Window,
    bounds: "dict[Source, str] | None" = None,
) -> None:
    from mqctl.engine import tail as engine

    to = window.to if bounds is None else bounds
    if window.count is None:
        raws = engine.entries(reader.session, streams, window.first, to)
        out.add(reader.items(raws))
    elif window.count:
        out.add(engine.last(reader, streams, window.count, window.first, to))


def _follow(
    out: Messages,
    reader: "Reader",
    streams: Sequence["Source"],
    window: _Window,
    *,
    grows: bool,
) -> None:
    from mqctl.core import ids
    from mqctl.engine import tail as engine

    bounds = engine.ends(reader.session, streams)
    _show(out, reader, streams, window, bounds)
    if window.first not in {"-", "+"}:
        start = ids.before(window.first)
        bounds = {s: max(start, end, key=ids.parse) for s, end in bounds.items()}
    following = engine.Follow(
        reader,
        bounds,
        out.context.note,
        pause=time.sleep,
        alive=lambda: _check_reader(out.context.out.fd),
        grows=grows,
    )
    for items in following.rounds():
        out.add(items)


def _check_reader(fd: int) -> None:
    """Raise BrokenPipeError when nobody can read standard output any more."""
    poll = select.poll()
    try:
        poll.register(fd, 0)
        events = poll.poll(0)
    except (OSError, ValueError):
        return
    if any(event & (select.POLLERR | select.POLLHUP) for _, event in events):
        raise BrokenPipeError
