"""mqctl admin: look at topics and groups, make them, remove them."""

import os
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mqctl.cli.context import Context, at_least, confirm
from mqctl.cli.group import Group as CommandGroup
from mqctl.cli.options import DryRun, Group, Topic, Yes, command, flag, switch
from mqctl.cli.records import Form, OutputForm, record_of, show
from mqctl.cli.tail import (
    Delim,
    EnvelopeForm,
    Format,
    JsonPayload,
    messages,
    position,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed import DataclassInstance

    from mqctl.engine.tail import Reader, Source

app = typer.Typer(
    cls=CommandGroup,
    help="Look at topics and groups, make them, remove them.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Lines = Annotated[int, switch("--lines", "-n", help="How many; 0 = all.")]


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="admin")


def show_rows(
    context: Context,
    items: "Iterable[DataclassInstance]",
    output: Form | None,
    brief: str = "",
) -> None:
    """Write dataclasses as records, one each; a narrow table has only `brief`."""
    now = context.session().clock.now_ms()
    records = map(record_of, items)
    show(context, records, output, brief=brief.split(), now_ms=now)


def show_one(context: Context, item: "DataclassInstance", output: Form | None) -> None:
    """Write one dataclass as the only record."""
    now = context.session().clock.now_ms()
    show(context, [record_of(item)], output, single=True, now_ms=now)


def approve(
    context: Context,
    plan: dict[str, object],
    question: str,
    output: Form | None,
    *,
    yes: bool,
) -> None:
    """Show on stderr what would be done and ask; Refused without a yes."""
    if not yes:
        if output in {"ndjson", "json", "csv"} or not context.out.isatty:
            from mqctl.render.notes import json_bytes

            text = json_bytes(plan).decode("utf-8", "replace") + "\n"
        else:
            from mqctl.render.table import name_value

            text = name_value(plan, context.terminal().width)
        sys.stderr.write(text)
    confirm(context, question, str(plan["topic"]), yes=yes)


# -- topics -------------------------------------------------------------------


@command(app, "topics")
def topics(
    context: Context,
    pattern: Annotated[
        str | None,
        typer.Argument(help="Only topics it matches.", metavar="[GLOB]"),
    ] = None,
    output: OutputForm = None,
) -> None:
    """List the topics.

    Example: mqctl admin topics 'orders-*'
    """
    from mqctl.engine import admin_topics

    session = context.session()
    names = admin_topics.named(session, pattern)
    brief = "topic partitions length groups pending retries dead last_at_ms"
    show_rows(context, admin_topics.rows(session, names), output, brief)


@command(app, "exists")
def exists(
    context: Context,
    topic: Topic,
    group: Annotated[
        str | None, typer.Argument(help="The consumer group.", metavar="[GROUP]")
    ] = None,
    output: OutputForm = None,
) -> None:
    """Tell whether a topic, or a group of it, exists; exit 4 when not.

    Example: mqctl admin exists orders billing
    """
    from mqctl.engine import admin_groups
    from mqctl.engine import topics as engine

    name, session = context.topic(topic), context.session()
    found = engine.exists(session, name)
    if found and group is not None:
        found = group in admin_groups.looks(session, name).names
    record: dict[str, object] = {"topic": name, "group": group, "exists": found}
    show(context, [record], output, single=True)
    if not found:
        raise typer.Exit(4)


@command(app, "info")
def info(
    context: Context,
    topic: Topic,
    partitions: Annotated[
        bool, switch("--partitions", help="A row for each partition.")
    ] = False,
    output: OutputForm = None,
) -> None:
    """Show a topic: sizes, ids, groups, retries, dead letters, memory.

    Example: mqctl admin info orders --partitions
    """
    from mqctl.engine import admin_topics

    name, session = context.topic(topic), context.session()
    if partitions:
        brief = "partition length first_at_ms last_at_ms memory_bytes pending owners"
        show_rows(context, admin_topics.partitions(session, name), output, brief)
    else:
        show_one(context, admin_topics.info(session, name), output)


@command(app, "create")
def create(
    context: Context,
    topic: Topic,
    partitions: Annotated[
        int, flag("--partitions", help="How many partitions it has.")
    ] = 1,
    output: OutputForm = None,
) -> None:
    """Create a topic; one that exists with as many partitions is left alone.

    Example: mqctl admin create orders --partitions 8
    """
    from mqctl.engine import admin_topics

    at_least("--partitions", partitions, 1)
    name = context.topic(topic)
    created = admin_topics.create(context.session(), name, partitions)
    if not created:
        context.note(f"topic {name} exists already")
    record: dict[str, object] = {
        "action": "create",
        "topic": name,
        "dry_run": False,
        "partitions": partitions,
        "created": int(created),
    }
    show(context, [record], output, single=True)


@command(app, "partitions")
def partitions(context: Context, topic: Topic, output: OutputForm = None) -> None:
    """Show how many partitions a topic has.

    Example: mqctl admin partitions orders
    """
    from mqctl.engine import topics as engine

    name = context.topic(topic)
    count = engine.require(context.session(), name)
    show(context, [{"topic": name, "partitions": count}], output, single=True)


@command(app, "route")
def route(
    context: Context,
    topic: Topic,
    keys: Annotated[list[str], typer.Argument(help="The keys.", metavar="KEY...")],
    output: OutputForm = None,
) -> None:
    """Show which partition keys go to.

    Example: mqctl admin route orders customer-17 customer-18
    """
    from mqctl.engine import admin_topics

    name = context.topic(topic)
    given = map(os.fsencode, keys)
    show_rows(context, admin_topics.routes(context.session(), name, given), output)


@command(app, "delete")
def delete(
    context: Context,
    topic: Topic,
    yes: Yes = False,
    dry_run: DryRun = False,
    output: OutputForm = None,
) -> None:
    """Delete a topic with everything it owns: messages, groups, dead letters.

    Example: mqctl admin delete orders --dry-run
    """
    from mqctl.engine import admin_delete

    name, session = context.topic(topic), context.session()
    planned = admin_delete.plan(session, name)
    if planned.remembered:
        context.note(
            f"{planned.remembered} deduplication keys stay until they expire: what "
            "they name still counts as stored"
        )
    if dry_run:
        show_one(context, planned.summary, output)
        return
    gone = planned.summary
    question = (
        f"delete topic {name}: {gone.length} messages, {gone.dead} dead letters, "
        f"{gone.retries} retries, {gone.groups} groups"
    )
    approve(context, record_of(gone), question, output, yes=yes)
    show_one(context, admin_delete.delete(session, planned), output)


# -- groups -------------------------------------------------------------------


@command(app, "groups")
def groups(context: Context, topic: Topic, output: OutputForm = None) -> None:
    """List the groups of a topic with their lag.

    Example: mqctl admin groups orders
    """
    from mqctl.engine import admin_groups

    name = context.topic(topic)
    brief = "group members pending oldest_pending_ms lag lag_ms last_ack_at_ms active"
    show_rows(context, admin_groups.rows(context.session(), name), output, brief)


@command(app, "group-stats")
def group_stats(
    context: Context, topic: Topic, group: Group, output: OutputForm = None
) -> None:
    """Show where a group stands on each partition.

    Example: mqctl admin group-stats orders billing
    """
    from mqctl.engine import admin_groups

    name = context.topic(topic)
    rows = admin_groups.partitions(context.session(), name, group)
    brief = "partition owner lag lag_ms pending oldest_idle_ms max_deliveries"
    show_rows(context, rows, output, brief)


@command(app, "consumers")
def consumers(
    context: Context, topic: Topic, group: Group, output: OutputForm = None
) -> None:
    """List the consumers of a group: alive, idle or gone.

    Example: mqctl admin consumers orders billing
    """
    from mqctl.engine import admin_groups

    name = context.topic(topic)
    rows = admin_groups.consumers(context.session(), name, group)
    brief = "consumer state partitions pending idle_ms oldest_pending_ms"
    show_rows(context, rows, output, brief)


@command(app, "leases")
def leases(
    context: Context,
    topic: Annotated[
        str | None, typer.Argument(help="Only this topic.", metavar="[TOPIC]")
    ] = None,
    group: Annotated[
        str | None, typer.Argument(help="Only this group.", metavar="[GROUP]")
    ] = None,
    output: OutputForm = None,
) -> None:
    """List who holds which partition.

    Example: mqctl admin leases orders
    """
    from mqctl.engine import admin_groups
    from mqctl.engine import topics as engine

    session = context.session()
    names = engine.names(session) if topic is None else [context.topic(topic)]
    brief = "topic group partition owner ttl_ms stuck"
    show_rows(context, admin_groups.leases(session, names, group), output, brief)


@command(app, "create-group")
def create_group(
    context: Context,
    topic: Topic,
    group: Group,
    first: Annotated[
        str,
        switch(
            "--from",
            help="Where it begins: start, end, an id, @TIME, -2h, last:N.",
            metavar="POS",
        ),
    ] = "start",
    output: OutputForm = None,
) -> None:
    """Create a group on all partitions of a topic.

    Example: mqctl admin create-group orders audit --from end
    """
    from mqctl.engine import admin_changes

    name, begin = context.topic(topic), position(context, first)
    made = admin_changes.create_group(context.session(), name, group, begin)
    if made.created < made.partitions:
        context.note(f"the group was there already on {made.partitions - made.created}")
    show_one(context, made, output)


@command(app, "delete-group")
def delete_group(
    context: Context,
    topic: Topic,
    group: Group,
    force: Annotated[
        bool, switch("--force", help="Even while its consumers run.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    output: OutputForm = None,
) -> None:
    """Delete a group with its position and what it has pending.

    Refused while its consumers run: they would start it again from the beginning.

    Example: mqctl admin delete-group orders audit --dry-run
    """
    from mqctl.engine import admin_changes

    name, session = context.topic(topic), context.session()
    plan = admin_changes.delete_group(session, name, group, dry_run=True)
    if dry_run:
        show_one(context, plan, output)
        return
    if not force:
        admin_changes.refuse_running(plan)
    question = f"delete group {group} of {name}: {plan.pending} messages are pending"
    if plan.retries:
        question += f", {plan.retries} retries are for it alone"
    approve(context, record_of(plan), question, output, yes=yes)
    done = admin_changes.delete_group(session, name, group, dry_run=False)
    if done.retries:
        context.note(f"{done.retries} retries wait for this group; nobody handles them")
    show_one(context, done, output)


@command(app, "pending")
def pending(
    context: Context,
    topic: Topic,
    group: Group,
    limit: Lines = 20,
    sort: Annotated[
        Literal["idle", "deliveries", "id"], switch("--sort", help="What comes first.")
    ] = "idle",
    asc: Annotated[bool, switch("--asc", help="The least first.")] = False,
    min_idle: Annotated[
        str,
        switch("--min-idle", help="Only what is idle for so long.", metavar="DUR"),
    ] = "0",
    consumer: Annotated[
        str | None, switch("--consumer", help="Only what this consumer holds.")
    ] = None,
    count: Annotated[bool, switch("--count", help="Only count them.")] = False,
    output: OutputForm = None,
) -> None:
    """List what a group has been given and not acknowledged, longest idle first.

    Example: mqctl admin pending orders billing --min-idle 5m
    """
    from mqctl.core.units import duration_ms
    from mqctl.engine import admin_pending

    name, session = context.topic(topic), context.session()
    at_least("-n", limit, 0)
    selection = admin_pending.Selection(consumer, duration_ms(min_idle))
    if count:
        total = admin_pending.counted(session, name, group, selection)
        show_one(context, total, output)
        return
    rows = admin_pending.rows(
        session, name, group, selection, limit=limit, sort=sort, ascending=asc
    )
    brief = "partition id consumer idle_ms deliveries attempt state key"
    show_rows(context, rows, output, brief)


@command(app, "retries")
def retries(context: Context, topic: Topic, output: OutputForm = None) -> None:
    """List what waits in the retry bucket, next due first.

    Example: mqctl admin retries orders
    """
    from mqctl.engine import admin_retries

    name = context.topic(topic)
    brief = "item kind due_in_ms attempt state"
    show_rows(context, admin_retries.rows(context.session(), name), output, brief)


# -- messages -----------------------------------------------------------------


@command(app, "recent")
def recent(
    context: Context,
    topic: Topic,
    count: Lines = 10,
    per_partition: Annotated[
        bool, switch("--per-partition", help="As many of each partition.")
    ] = False,
    output: EnvelopeForm = None,
    format_string: Format = None,
    delim: Delim = "\n",
    json_payload: JsonPayload = False,
) -> None:
    """Show the newest messages of a topic, newest first.

    Example: mqctl admin recent orders -n 3
    """
    from itertools import islice

    from mqctl.engine import tail as engine

    limit = at_least("-n", count, 0) or None
    name, reader = context.topic(topic), _reader(context)
    streams = engine.sources(reader.session, name)
    out = messages(
        context,
        output,
        format_string,
        default="ndjson",
        delim=delim,
        json_payload=json_payload,
    )
    out.begin()
    page = min(limit or engine.PAGE, engine.PAGE)
    for chosen in [[s] for s in streams] if per_partition else [streams]:
        raws = engine.entries(reader.session, chosen, newest_first=True, page=page)
        out.add(reader.items(islice(raws, limit)))
    out.end()


@command(app, "range")
def range_(
    context: Context,
    topic: Topic,
    partition: Annotated[
        int, typer.Argument(help="The partition.", metavar="PARTITION")
    ],
    first: Annotated[
        str, typer.Argument(help="Where to begin.", metavar="[FROM]")
    ] = "start",
    to: Annotated[str, typer.Argument(help="Where to end.", metavar="[TO]")] = "end",
    count: Lines = 10,
    reverse: Annotated[bool, switch("--reverse", help="Newest first.")] = False,
    output: EnvelopeForm = None,
    format_string: Format = None,
    delim: Delim = "\n",
    json_payload: JsonPayload = False,
) -> None:
    """Show messages of one partition between two positions, both included.

    With --reverse the positions may stand in either order. A position that begins
    with a dash goes after --.

    Example: mqctl admin range orders 0 @2026-01-02T00:00:00Z end -n 100
    """
    from itertools import islice

    from mqctl.engine import tail as engine

    limit = at_least("-n", count, 0) or None
    at_least("PARTITION", partition, 0)
    name, reader = context.topic(topic), _reader(context)
    streams = engine.sources(reader.session, name, [partition])
    low, high = _bounds(context, streams[0], first, to, either=reverse)
    out = messages(
        context,
        output,
        format_string,
        default="ndjson",
        delim=delim,
        json_payload=json_payload,
    )
    page = min(limit or engine.PAGE, engine.PAGE)
    raws = engine.entries(
        reader.session, streams, low, high, newest_first=reverse, page=page
    )
    out.write(reader.items(islice(raws, limit)))


def _bounds(
    context: Context, source: "Source", first: str, to: str, *, either: bool
) -> tuple[str, str]:
    """Return the lowest and the highest id; `last:N` is counted from the end."""
    from itertools import islice

    from mqctl.core import ids
    from mqctl.engine import tail as engine

    begin, end = position(context, first), position(context, to)
    if either and _place(begin.first) > _place(end.to):
        begin, end = end, begin
    if begin.last is None:
        return begin.first, end.to
    newest = engine.entries(context.session(), [source], newest_first=True)
    found = [raw.id for raw in islice(newest, begin.last)]
    return (min(found, key=ids.parse) if found else "+"), end.to


def _place(bound: str) -> tuple[int, int]:
    from mqctl.core import ids

    if bound == "-":
        return (0, 0)
    return (2**64, 0) if bound == "+" else ids.parse(bound)


@command(app, "get")
def get(
    context: Context,
    topic: Topic,
    entry_id: Annotated[str, typer.Argument(help="The message's id.", metavar="ID")],
    output: EnvelopeForm = None,
    format_string: Format = None,
    delim: Delim = "\n",
    json_payload: JsonPayload = False,
) -> None:
    """Show the message with an id; those of all partitions that have it.

    Example: mqctl admin get orders 1767325445678-0
    """
    from mqctl.core.errors import NotFound
    from mqctl.engine import tail as engine

    name, reader = context.topic(topic), _reader(context)
    wanted = exact_id(entry_id)
    streams = engine.sources(reader.session, name)
    found = list(engine.entries(reader.session, streams, wanted, wanted))
    if not found:
        raise NotFound(
            f"topic {name} has no message {entry_id}",
            hint=f"mqctl admin recent {name}",
            topic=name,
            id=entry_id,
        )
    out = messages(
        context,
        output,
        format_string,
        default="ndjson",
        delim=delim,
        json_payload=json_payload,
    )
    out.write(reader.items(found))


def exact_id(text: str) -> str:
    """Return an id in its plain form; BadUsage when the text is none."""
    from mqctl.core import ids
    from mqctl.core.errors import BadUsage

    try:
        ms, seq = ids.parse(text)
    except ValueError:
        hint = f"did you mean {text}-0?" if text.isdecimal() else None
        raise BadUsage(f"not an id: {text}", hint=hint) from None
    return f"{ms}-{seq}"


def _reader(context: Context) -> "Reader":
    from mqctl.engine.tail import Reader

    return Reader(context.session(), context.warn)


__all__ = ["app", "approve", "exact_id", "register", "show_one", "show_rows"]
