"""mqctl consume: what the options say."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mqctl.cli.consuming import Orders, Run, Writing, address
from mqctl.cli.context import Context, at_least
from mqctl.cli.group import SplitCommand
from mqctl.cli.options import Duration, command, flag
from mqctl.cli.records import Form
from mqctl.core.errors import BadUsage

if TYPE_CHECKING:
    from mqctl.core.filters import Filter

MessageForm = Annotated[
    Form | None,
    flag(
        "--output",
        "-o",
        help="How messages are printed.",
        show_default="table on a terminal, else raw",
    ),
]
Format = Annotated[
    str | None,
    flag("--format", "-F", help="Format string, such as '%p %o %k: %s\\n'."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app, "consume", cls=SplitCommand)
    def consume(
        context: Context,
        group: Annotated[str, flag("--group", "-g", help="The consumer group.")],
        topics: Annotated[
            list[str] | None,
            typer.Argument(
                help="The topics; none with a pattern.",
                metavar="TOPIC...",
                show_default=False,
            ),
        ] = None,
        topic_glob: Annotated[
            str | None,
            flag("--topic-glob", help="Topics of these names.", metavar="GLOB"),
        ] = None,
        topic_regex: Annotated[
            str | None,
            flag(
                "--topic-regex",
                help="Topics whose whole name matches; new ones are picked up.",
                metavar="RE",
            ),
        ] = None,
        exclude_regex: Annotated[
            str | None,
            flag("--exclude-regex", help="But not these topics.", metavar="RE"),
        ] = None,
        consumer: Annotated[
            str | None,
            flag(
                "--consumer",
                help="Name of this consumer.",
                metavar="NAME",
                show_default="unique",
            ),
        ] = None,
        consumer_prefix: Annotated[
            str, flag("--consumer-prefix", help="Before the 8 digits of a unique name.")
        ] = "consumer-",
        create: Annotated[
            bool, flag("--create", help="Create topics that do not exist.")
        ] = False,
        partitions: Annotated[
            int, flag("--partitions", help="Partitions of a topic that is created.")
        ] = 1,
        position: Annotated[
            str,
            flag(
                "--from",
                help="Where a new group begins: start, end, an id, @TIME, -2h, last:N.",
                metavar="POS",
            ),
        ] = "start",
        partition: Annotated[
            str | None,
            flag("--partition", "-p", help="Only these partitions.", metavar="LIST"),
        ] = None,
        shard: Annotated[
            str | None,
            flag(
                "--shard",
                help="Only the partitions with index mod M = R.",
                metavar="R/M",
            ),
        ] = None,
        weight: Annotated[
            int, flag("--weight", help="Share of partitions against other consumers.")
        ] = 1,
        where_key: Annotated[
            str | None,
            flag("--where-key", help="Only messages of these keys.", metavar="GLOB"),
        ] = None,
        where_header: Annotated[
            list[str] | None,
            flag(
                "--where-header",
                help="Only messages with this header; repeatable.",
                metavar="NAME=GLOB",
            ),
        ] = None,
        tag: Annotated[
            str | None, flag("--tag", help="Only messages of this tag.", metavar="TAG")
        ] = None,
        workers: Annotated[
            int, flag("--workers", help="Partitions handled at the same time.")
        ] = 8,
        batch: Annotated[int, flag("--batch", help="Messages read ahead.")] = 10,
        poll: Annotated[
            Duration, flag("--poll", help="How long one wait at the server lasts.")
        ] = "1s",
        max_in_flight: Annotated[
            int, flag("--max-in-flight", help="Most messages in hand; 0 = no bound.")
        ] = 0,
        max_partitions: Annotated[
            int, flag("--max-partitions", help="Most partitions held; 0 = no bound.")
        ] = 0,
        lease_ttl: Annotated[
            Duration, flag("--lease-ttl", help="Life of a partition lease.")
        ] = "15s",
        renew: Annotated[
            Duration, flag("--renew", help="How often leases are renewed.")
        ] = "3s",
        rebalance: Annotated[
            Duration, flag("--rebalance", help="How often topics are looked at.")
        ] = "5s",
        claim_idle: Annotated[
            Duration,
            flag("--claim-idle", help="Idle time after which entries are taken over."),
        ] = "5m",
        claim_interval: Annotated[
            Duration, flag("--claim-interval", help="Longest pause between scans.")
        ] = "30s",
        claim_batch: Annotated[
            int, flag("--claim-batch", help="Page size of the take-over.")
        ] = 50,
        claim: Annotated[
            Literal["on", "off", "only"],
            flag(
                "--claim",
                help="Take over abandoned entries: on, off, or do only that.",
            ),
        ] = "on",
        retry_mode: Annotated[
            Literal["requeue", "pending", "in-place"],
            flag(
                "--retry-mode",
                help="Send a failed message again, leave it pending, or wait for it.",
            ),
        ] = "requeue",
        ordered: Annotated[
            bool,
            flag("--ordered", help="Strict order: the same as --retry-mode in-place."),
        ] = False,
        max_attempts: Annotated[
            int | None,
            flag("--max-attempts", help="The same as --retry-max N-1.", metavar="N"),
        ] = None,
        backoff: Annotated[
            str | None,
            flag(
                "--backoff",
                help="Delay of each retry instead of --retry-base and --retry-cap.",
                metavar="DUR,DUR,...",
            ),
        ] = None,
        retry_max: Annotated[
            int, flag("--retry-max", help="Retries after the first attempt.")
        ] = 5,
        retry_base: Annotated[
            Duration, flag("--retry-base", help="Delay of the first retry.")
        ] = "1s",
        retry_cap: Annotated[
            Duration, flag("--retry-cap", help="Longest delay of a retry.")
        ] = "60s",
        mover_interval: Annotated[
            Duration, flag("--mover-interval", help="Longest pause of the retry mover.")
        ] = "1s",
        mover_batch: Annotated[
            int, flag("--mover-batch", help="Retries moved at a time.")
        ] = 100,
        max_messages: Annotated[
            int, flag("--max-messages", "-n", help="End after N messages.")
        ] = 0,
        max_time: Annotated[
            Duration, flag("--max-time", help="End after this time.", metavar="DUR")
        ] = "0",
        idle_exit: Annotated[
            Duration,
            flag("--idle-exit", help="End when nothing came for this long."),
        ] = "0",
        exit_when_empty: Annotated[
            bool, flag("--exit-when-empty", "-e", help="End when nothing is left.")
        ] = False,
        fail_if_empty: Annotated[
            bool, flag("--fail-if-empty", help="Exit 5 when nothing was received.")
        ] = False,
        ack: Annotated[
            Literal["auto", "manual", "none"],
            flag("--ack", help="Acknowledge what was printed, or hand out receipts."),
        ] = "auto",
        java_codec: Annotated[
            Literal["auto", "kryo5", "string", "json"],
            flag("--java-codec", help="Codec of the dead letters written."),
        ] = "auto",
        worker: Annotated[
            int,
            flag(
                "--worker",
                help="Let N processes of the command stay and take message after "
                "message.",
                metavar="N",
            ),
        ] = 0,
        worker_proto: Annotated[
            Literal["ndjson", "lines"],
            flag(
                "--worker-proto",
                help="Envelopes in and JSON answers out, or payload lines and words.",
            ),
        ] = "ndjson",
        keep: Annotated[
            int,
            flag(
                "--keep",
                help="Trim what all groups have finished to the newest N; 0 = never.",
                metavar="N",
            ),
        ] = 100_000,
        keep_for: Annotated[
            Duration, flag("--keep-for", help="Trim finished entries older than this.")
        ] = "0",
        keep_interval: Annotated[
            Duration, flag("--keep-interval", help="How often to trim.")
        ] = "60s",
        keep_payloads: Annotated[
            bool,
            flag("--keep-payloads", help="Keep finished entries with a large body."),
        ] = False,
        ack_delete: Annotated[
            Literal["none", "immediate", "all-groups-ack"],
            flag(
                "--ack-delete",
                help="Remove entries once acknowledged: by this group, by all groups.",
            ),
        ] = "none",
        ackset_ttl: Annotated[
            Duration, flag("--ackset-ttl", help="Life of the sets of groups that did.")
        ] = "24h",
        honor_defer_ack: Annotated[
            bool,
            flag(
                "--honor-defer-ack",
                help="Leave messages with x-defer-ack pending for their receipts.",
            ),
        ] = False,
        stats: Annotated[
            Duration, flag("--stats", help="Print statistics this often; 0 = never.")
        ] = "0",
        ready_file: Annotated[
            str | None,
            flag(
                "--ready-file",
                help="Create this file when the first partition is held.",
                metavar="PATH",
            ),
        ] = None,
        metrics_port: Annotated[
            str | None,
            flag(
                "--metrics-port",
                help="Serve Prometheus metrics, on localhost unless a host is given.",
                metavar="[HOST:]PORT",
            ),
        ] = None,
        drain_timeout: Annotated[
            Duration, flag("--drain-timeout", help="Longest wait for work at the end.")
        ] = "30s",
        output: MessageForm = None,
        format_string: Format = None,
        delim: Annotated[
            str,
            flag(
                "--delim",
                "-D",
                help="After each payload of -o raw.",
                metavar="STR",
                show_default="newline",
            ),
        ] = "\n",
        json_payload: Annotated[
            bool, flag("--json-payload", help="Embed JSON payloads as they are.")
        ] = False,
        stdin: Annotated[
            Literal["payload", "envelope", "none"],
            flag("--stdin", help="What a command gets on its standard input."),
        ] = "payload",
        handler_timeout: Annotated[
            Duration | None,
            flag("--handler-timeout", help="Stop a command after this time: a retry."),
        ] = None,
        status_map: Annotated[
            str | None,
            flag(
                "--map",
                help="Exit status rules, such as 3=dead,10-19=retry:30s.",
                metavar="RULES",
            ),
        ] = None,
    ) -> None:
        """Print messages of a group, or run a command for each.

        A command after -- gets the payload on standard input and the rest in MQ_*
        variables. Its exit status: 0 done, 75 or 111 retry, 65 or 100 dead letter,
        99 done and stop, anything else retry.

        Example: mqctl consume orders -g billing -e -- ./charge.sh
        """
        from mqctl.core.names import check_name
        from mqctl.core.options import ConsumerOptions
        from mqctl.core.units import duration_ms as ms

        options = ConsumerOptions(
            topics=tuple(dict.fromkeys(context.topic(name) for name in topics or [])),
            group=check_name("group", group),
            consumer=None if consumer is None else check_name("consumer", consumer),
            consumer_prefix=check_name("consumer", consumer_prefix),
            create=create,
            create_partitions=at_least("--partitions", partitions, 1),
            position=position,
            partitions=_indices(partition),
            shard=_shard(shard),
            weight=at_least("--weight", weight, 0),
            where=_where(where_key, where_header, tag),
            topic_glob=context.pattern(topic_glob, glob=True),
            topic_regex=context.pattern(topic_regex),
            exclude_regex=context.pattern(exclude_regex),
            workers=workers,
            batch=batch,
            poll_ms=ms(poll),
            max_in_flight=max_in_flight,
            max_partitions=max_partitions,
            lease_ttl_ms=ms(lease_ttl),
            renew_ms=ms(renew),
            rebalance_ms=ms(rebalance),
            claim_idle_ms=ms(claim_idle),
            claim_interval_ms=ms(claim_interval),
            claim_batch=claim_batch,
            claim=claim,
            retry_mode="in-place" if ordered else retry_mode,
            backoff=tuple(ms(part) for part in backoff.split(",")) if backoff else (),
            retry_max=_retry_max(retry_max, max_attempts),
            retry_base_ms=ms(retry_base),
            retry_cap_ms=ms(retry_cap),
            mover_interval_ms=ms(mover_interval),
            mover_batch=mover_batch,
            max_messages=at_least("--max-messages", max_messages, 0),
            max_time_ms=ms(max_time),
            idle_exit_ms=ms(idle_exit),
            exit_when_empty=exit_when_empty,
            ack=ack,
            java_codec=java_codec,
            drain_timeout_ms=ms(drain_timeout),
            stats_ms=ms(stats),
            keep=at_least("--keep", keep, 0),
            keep_for_ms=ms(keep_for),
            keep_interval_ms=ms(keep_interval),
            keep_payloads=keep_payloads,
            ack_delete=ack_delete,
            ackset_ttl_ms=ms(ackset_ttl),
            honor_defer_ack=honor_defer_ack,
        )
        run = Run(
            context,
            options,
            output=output,
            fail_if_empty=fail_if_empty,
            ready_file=ready_file,
            metrics=None if metrics_port is None else address(metrics_port),
        )
        if context.words is not None:
            if ack != "auto":
                raise BadUsage("--ack is for printing; a command settles by its status")
            orders = Orders(
                context.words,
                stdin,
                handler_timeout,
                status_map,
                at_least("--worker", worker, 0),
                worker_proto,
            )
            code = run.work(orders)
        else:
            if worker:
                raise BadUsage("--worker needs a command after --")
            code = run.print(Writing(format_string, delim, json_payload))
        if code:
            raise typer.Exit(code)


def _indices(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise BadUsage(f"not a list of partitions: {text}", hint="-p 0,2,4-7")
        end = int(last) if dash else int(first)
        if end - int(first) > 100_000:  # noqa: PLR2004 - a slip of the finger
            raise BadUsage(f"not a list of partitions: {text}")
        found += range(int(first), end + 1)
    return tuple(sorted(set(found)))


def _retry_max(retries: int, attempts: int | None) -> int:
    if attempts is not None:
        return at_least("--max-attempts", attempts, 1) - 1
    return at_least("--retry-max", retries, 0)


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    remainder, slash, modulo = text.partition("/")
    if not (slash and remainder.isdigit() and modulo.isdigit()):
        raise BadUsage(f"not a shard: {text}", hint="--shard 0/4")
    return int(remainder), int(modulo)


def _where(key: str | None, headers: list[str] | None, tag: str | None) -> "Filter":
    from glob import escape

    from mqctl.core.filters import make_filter

    tags = [] if tag is None else [f"tag={escape(tag)}"]
    return make_filter(key, [*(headers or []), *tags])
