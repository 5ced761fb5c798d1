"""mqctl dlq: dead letters: look at them, send them back, delete them."""

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from mqctl.cli.admin import approve, exact_id, show_one, show_rows
from mqctl.cli.context import Context, at_least
from mqctl.cli.group import Group as CommandGroup
from mqctl.cli.options import DryRun, Topic, Yes, command, switch
from mqctl.cli.records import Form, OutputForm, record_of, show
from mqctl.cli.signals import interruptible
from mqctl.cli.tail import (
    Delim,
    EnvelopeForm,
    Format,
    JsonPayload,
    WhereKey,
    messages,
    position,
)
from mqctl.core.errors import Interrupted, NotFound, Partial

if TYPE_CHECKING:
    from collections.abc import Callable

    from mqctl.core.message import DeadLetter
    from mqctl.engine.dead_letters_replay import Replay, ReplayOptions, Report
    from mqctl.engine.tail import Reader

app = typer.Typer(
    cls=CommandGroup,
    help="Dead letters: look at them, send them back, delete them.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
Pause: TypeAlias = "Callable[[float], None]"
_TOLD = 5  # failures named on stderr
Ids = Annotated[list[str], typer.Argument(help="Ids of dead letters.", metavar="ID...")]
WhereReason = Annotated[
    str | None,
    switch(
        "--where-reason",
        help="Only those whose reason matches, in any case.",
        metavar="GLOB",
    ),
]
Delete = Annotated[
    bool, switch("--delete", help="Move them: each is deleted with its copy.")
]
MaxReplays = Annotated[
    int, switch("--max-replays", help="Skip messages replayed that often already.")
]
To = Annotated[
    str | None, switch("--to", help="Copy to this topic instead.", metavar="TOPIC")
]
AllGroups = Annotated[
    bool, switch("--all-groups", help="For all groups, not the one that gave it up.")
]
Again = Annotated[bool, switch("--again", help="Also those that were replayed before.")]


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="dlq")


@command(app, "topics")
def topics(context: Context, output: OutputForm = None) -> None:
    """List the topics that have dead letters.

    Example: mqctl dlq topics
    """
    from mqctl.engine import dead_letters

    show_rows(context, dead_letters.counts(context.session()), output)


@command(app, "size")
def size(context: Context, topic: Topic, output: OutputForm = None) -> None:
    """Count the dead letters of a topic.

    Example: mqctl dlq size orders
    """
    from mqctl.engine import dead_letters

    name = context.topic(topic)
    dead = dead_letters.size(context.session(), name)
    show(context, [{"topic": name, "dead": dead}], output, single=True)


@command(app, "list")
def list_(
    context: Context,
    topic: Topic,
    limit: Annotated[int, switch("--lines", "-n", help="How many; 0 = all.")] = 20,
    where_reason: WhereReason = None,
    where_key: WhereKey = None,
    since: Annotated[
        str | None,
        switch("--since", help="Given up since then: 2h, @TIME, an id.", metavar="POS"),
    ] = None,
    until: Annotated[
        str | None,
        switch("--until", help="Given up before: 2h, @TIME, an id.", metavar="POS"),
    ] = None,
    full: Annotated[
        bool, switch("--full", help="Whole messages, as envelopes.")
    ] = False,
    output: EnvelopeForm = None,
    format_string: Format = None,
    delim: Delim = "\n",
    json_payload: JsonPayload = False,
) -> None:
    """List dead letters, newest first.

    Example: mqctl dlq list orders --where-reason exhausted --since 2h
    """
    from mqctl.engine import dead_letters

    name, reader = context.topic(topic), _reader(context)
    selection = dead_letters.Selection(
        reason=where_reason,
        key=where_key,
        first="-" if since is None else _moment(context, since)[0],
        to="+" if until is None else _moment(context, until)[1],
    )
    found = dead_letters.newest(reader, name, selection, at_least("-n", limit, 0))
    if full or format_string is not None:
        out = messages(
            context,
            output,
            format_string,
            default="ndjson",
            delim=delim,
            json_payload=json_payload,
        )
        out.write(found)
    else:
        rows = dead_letters.rows(reader.session, name, found)
        brief = "id failed_at_ms attempts reason key payload_start"
        show_rows(context, rows, output, brief)


def _moment(context: Context, text: str) -> tuple[str, str]:
    """Return the first and the last id of a position; a bare duration means ago."""
    from mqctl.core.units import duration_ms

    if text[-1:] in {"s", "m", "h", "d"}:
        duration_ms(text.removeprefix("-"))  # an error that speaks of durations
        text = f"-{text.removeprefix('-')}"
    found = position(context, text)
    return found.first, found.to


@command(app, "show")
def show_(
    context: Context,
    topic: Topic,
    entry_id: Annotated[
        str, typer.Argument(help="The dead letter's id.", metavar="ID")
    ],
    output: EnvelopeForm = None,
    format_string: Format = None,
    delim: Delim = "\n",
    json_payload: JsonPayload = False,
) -> None:
    """Show a dead letter with everything that is known of its end.

    Example: mqctl dlq show orders 1767325445678-0
    """
    from mqctl.engine import dead_letters

    name, reader = context.topic(topic), _reader(context)
    letter = dead_letters.get(reader, name, exact_id(entry_id))
    if letter is None:
        raise NotFound(
            f"topic {name} has no dead letter {entry_id}",
            hint=f"mqctl dlq list {name}",
            topic=name,
            id=entry_id,
        )
    chosen = output or ("table" if context.out.isatty else "ndjson")
    if format_string is None and chosen in {"table", "json"}:
        _show_fields(context, letter, chosen, json_payload=json_payload)
        return
    out = messages(
        context,
        output,
        format_string,
        default="ndjson",
        delim=delim,
        json_payload=json_payload,
    )
    out.write([letter])


def _show_fields(
    context: Context, letter: "DeadLetter", output: Form, *, json_payload: bool
) -> None:
    """Show one envelope as a document of its own."""
    import orjson

    from mqctl.codecs.envelope import encode_dead

    line = encode_dead(letter, json_payload=json_payload)
    if output == "json":
        context.out.write(line)
        return
    record = orjson.loads(line)
    del record["ts_ms"]  # `timestamp` says the same
    show(context, [record.pop("dead") | record], output, single=True)


@command(app, "replay")
def replay(
    context: Context,
    topic: Topic,
    entry_ids: Ids,
    delete: Delete = False,
    max_replays: MaxReplays = 3,
    to: To = None,
    all_groups: AllGroups = False,
    again: Again = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    output: OutputForm = None,
) -> None:
    """Send dead letters back to where they came from; they stay unless --delete.

    The copy starts over with its first attempt, for the group that gave it up.
    Exit 3 when one of them could not be replayed.

    Example: mqctl dlq replay orders 1767325445678-0
    """
    from mqctl.engine.dead_letters_replay import ReplayOptions

    options = ReplayOptions(
        to=None if to is None else context.topic(to),
        delete=delete,
        max_replays=max_replays,
        all_groups=all_groups,
        again=again,
        dry_run=dry_run,
    )
    ids = [exact_id(entry_id) for entry_id in entry_ids]
    _Run(context, context.topic(topic), options, output, ids).go(yes=yes)


@command(app, "replay-all")
def replay_all(
    context: Context,
    topic: Topic,
    limit: Annotated[int, switch("--max", help="At most N; 0 = all.", metavar="N")] = 0,
    rate: Annotated[
        str | None, switch("--rate", help="No faster than this.", metavar="N/s")
    ] = None,
    where_reason: WhereReason = None,
    delete: Delete = False,
    max_replays: MaxReplays = 3,
    to: To = None,
    all_groups: AllGroups = False,
    again: Again = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    output: OutputForm = None,
) -> None:
    """Send back all dead letters that are there now, oldest first.

    Those replayed before are skipped, so an interrupted run is simply run again.

    Example: mqctl dlq replay-all orders --where-reason exhausted --dry-run
    """
    from mqctl.core.units import rate as per_second
    from mqctl.engine.dead_letters_replay import ReplayOptions

    options = ReplayOptions(
        to=None if to is None else context.topic(to),
        limit=at_least("--max", limit, 0),
        rate=0.0 if rate is None else per_second(rate),
        reason=where_reason,
        delete=delete,
        max_replays=max_replays,
        all_groups=all_groups,
        again=again,
        dry_run=dry_run,
    )
    _Run(context, context.topic(topic), options, output).go(yes=yes)


class _Run:
    """One replay from the question to the exit code. `ids` None: all there are."""

    def __init__(
        self,
        context: Context,
        topic: str,
        options: "ReplayOptions",
        output: Form | None,
        ids: list[str] | None = None,
    ) -> None:
        self._context = context
        self._topic = topic
        self._options = options
        self._output = output
        self._ids = ids
        self._action = "replay-all" if ids is None else "replay"
        at_least("--max-replays", options.max_replays, 0)

    def go(self, *, yes: bool) -> None:
        """Ask when entries are to be deleted, replay, print the account."""
        ask = not yes or self._context.protected
        if self._options.delete and not self._options.dry_run and ask:
            self._ask()
        with interruptible() as interrupt:
            self._replay(interrupt.sleep)

    def _ask(self) -> None:
        from dataclasses import replace

        plan = self._engine(replace(self._options, dry_run=True), lambda _: None)
        report = self._work(plan)
        question = f"move {len(report.ids)} dead letters back to {plan.target}"
        record = report.record(self._action, self._topic, dry_run=True)
        approve(self._context, record, question, self._output, yes=False)

    def _replay(self, pause: Pause) -> None:
        engine = self._engine(self._options, pause)
        try:
            self._work(engine)
        except BaseException as error:
            if engine.report.replayed or isinstance(error, Interrupted):
                self._tell(engine.report)
            raise
        self._tell(engine.report)
        self._judge(engine.report)

    def _engine(self, options: "ReplayOptions", pause: Pause) -> "Replay":
        from mqctl.engine.dead_letters_replay import Replay

        return Replay(self._context.session(), self._topic, options, pause)

    def _work(self, engine: "Replay") -> "Report":
        return engine.all() if self._ids is None else engine.some(self._ids)

    def _tell(self, report: "Report") -> None:
        context, dry_run = self._context, self._options.dry_run
        record = report.record(self._action, self._topic, dry_run=dry_run)
        show(context, [record], self._output, single=True)
        if report.unaddressed and not self._options.all_groups:
            context.note(
                f"{report.unaddressed} name no group that gave them up: every group "
                "gets them"
            )
        if report.left:
            context.note(f"{report.left} dead letters were not looked at")
        for entry_id, why in list(report.failures.items())[:_TOLD]:
            context.warn(f"{entry_id}: {why}")

    def _judge(self, report: "Report") -> None:
        if report.failures:
            message = f"{len(report.failures)} of {report.selected} could not be"
            if report.cause is not None:
                message = f"{report.cause.message}; {message}"
            raise Partial(f"{message} replayed", topic=self._topic)


@command(app, "delete")
def delete(
    context: Context,
    topic: Topic,
    entry_ids: Ids,
    yes: Yes = False,
    dry_run: DryRun = False,
    output: OutputForm = None,
) -> None:
    """Delete dead letters by their ids.

    Exit 4 when none of them is there, 3 when some are not.

    Example: mqctl dlq delete orders 1767325445678-0
    """
    from mqctl.engine import dead_letters

    name, session = context.topic(topic), context.session()
    ids = [exact_id(entry_id) for entry_id in entry_ids]
    plan = dead_letters.remove(session, name, ids, dry_run=True)
    there = plan.selected - plan.not_found
    if not there:
        raise NotFound(
            f"topic {name} has no dead letter {', '.join(ids)}",
            hint=f"mqctl dlq list {name}",
            topic=name,
        )
    if dry_run:
        show_one(context, plan, output)
        return
    question = f"delete {there} dead letters of {name}"
    approve(context, record_of(plan), question, output, yes=yes)
    done = dead_letters.remove(session, name, ids, dry_run=False)
    show_one(context, done, output)
    if done.not_found:
        raise Partial(f"{done.not_found} of {done.selected} were not there", topic=name)


def _reader(context: Context) -> "Reader":
    from mqctl.engine.tail import Reader

    return Reader(context.session(), context.warn)
