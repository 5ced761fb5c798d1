"""Running a consumer from the command line: printing or commands, signals, summary."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mqctl.cli.context import Context
from mqctl.cli.output import Output
from mqctl.cli.records import Form
from mqctl.cli.signals import Caught, stopping
from mqctl.core.errors import BadConfig, BadUsage, Empty, Interrupted

if TYPE_CHECKING:
    from mqctl.core.handler import Handler
    from mqctl.core.message import Delivery
    from mqctl.core.options import ConsumerOptions, Summary
    from mqctl.engine.consumer import Consumer
    from mqctl.handlers.worker import WorkerHandler
    from mqctl.render.messages import MessageWriter

Stdin = Literal["payload", "envelope", "none"]
WorkerProtocol = Literal["ndjson", "lines"]


@dataclass(slots=True)
class Printer:
    """A sink that writes messages to stdout, whole batches, nothing held back."""

    out: Output
    writer: "MessageWriter"
    began: bool = False

    def write(
        self, deliveries: "Sequence[Delivery]", alive: Callable[[], float]
    ) -> int:
        """Write whole messages; return how many have left."""
        if not self.began:
            self.out.write(self.writer.begin())
            self.began = True
        records = [self.writer.batch((delivery,)) for delivery in deliveries]
        return self.out.write_records(records, alive)

    def close(self) -> None:
        """Write what closes the document."""
        head = b"" if self.began else self.writer.begin()
        self.out.write(head + self.writer.end())


@dataclass(frozen=True, slots=True)
class Writing:
    """How messages are printed: by a format string, else in the output format."""

    format_string: str | None
    delimiter: str
    json_payload: bool


@dataclass(frozen=True, slots=True)
class Orders:
    """The command to run, and how its end or its answers are read.

    `workers` 0 runs it once for each message, else so many stay and take one after
    another.
    """

    words: list[str]
    stdin: Stdin = "payload"
    timeout: str | None = None
    rules: str | None = None
    workers: int = 0
    protocol: WorkerProtocol = "ndjson"


@dataclass(frozen=True, slots=True)
class Run:
    """One consumer's run. `metrics` is host and port of an endpoint to serve."""

    context: Context
    options: "ConsumerOptions"
    output: Form | None = None
    fail_if_empty: bool = False
    ready_file: str | None = None
    metrics: tuple[str, int] | None = None

    def print(self, writing: Writing) -> int:
        """Print messages; return the exit code."""
        return self._consume(self._printer(writing), None)

    def work(self, orders: Orders) -> int:
        """Run a command for each message, or workers; return the exit code."""
        if not orders.workers:
            return self._consume(None, _commands(orders))
        workers = _workers(orders)
        try:
            return self._consume(None, workers)
        finally:
            workers.close()

    def _printer(self, writing: Writing) -> Printer:
        from mqctl.render.messages import message_writer, template_writer
        from mqctl.render.template import compile_template

        out = self.context.out
        if writing.format_string is not None:
            template = compile_template(writing.format_string)
            return Printer(out, template_writer(template))
        delimiter = writing.delimiter.replace("\\n", "\n").replace("\\0", "\0")
        writer = message_writer(
            self.output or ("table" if out.isatty else "raw"),
            delimiter=os.fsencode(delimiter),
            receipt=self.options.ack == "manual",
            json_payload=writing.json_payload,
            show_topic=len(self.options.topics) != 1,
            color=self.context.terminal().color,
        )
        return Printer(out, writer)

    def _consume(self, printer: Printer | None, handler: "Handler | None") -> int:
        from mqctl.engine.consumer import Consumer

        context = self.context
        worker = Consumer(
            context.session(),
            self.options,
            handler=handler,
            sink=printer,
            note=context.note,
            on_ready=self._ready,
        )
        with self._signals(worker) as caught, self._endpoint(worker):
            try:
                worker.run()
                if printer is not None and worker.error is None:
                    printer.close()
            finally:
                self._unready()
                if worker.joined and not isinstance(worker.error, BrokenPipeError):
                    _tell(context, worker, worker.summary, self.output)
        if isinstance(worker.error, BrokenPipeError):
            raise worker.error
        code = _code(caught, drained=worker.drained)
        if code == 0 and self.fail_if_empty and not worker.summary.received:
            raise Empty("nothing was received", group=self.options.group)
        return code

    @contextmanager
    def _signals(self, worker: "Consumer") -> Iterator[Caught]:
        def toggle() -> None:
            if worker.paused:
                worker.resume()
            else:
                worker.pause()
            worker.tell()

        actions = {signal.SIGUSR1: worker.tell, signal.SIGUSR2: toggle}
        with stopping(lambda hard: worker.stop(hard=hard), actions) as caught:
            yield caught

    @contextmanager
    def _endpoint(self, worker: "Consumer") -> Iterator[None]:
        if self.metrics is None:
            yield
            return
        from mqctl.cli.endpoint import serving

        host, port = self.metrics
        with serving(host, port, worker.meter) as where:
            self.context.note(f"metrics at http://{where}/metrics")
            yield

    def _ready(self) -> None:
        if self.ready_file is None:
            return
        try:
            with open(self.ready_file, "w", encoding="utf-8") as file:  # noqa: PTH123
                file.write(f"{os.getpid()}\n")
        except OSError as error:
            raise BadConfig(
                f"cannot write the ready file {self.ready_file}: {error.strerror}"
            ) from error

    def _unready(self) -> None:
        if self.ready_file is not None:
            with suppress(OSError):
                os.unlink(self.ready_file)  # noqa: PTH108


def address(text: str) -> tuple[str, int]:
    """Read `[HOST:]PORT`; BadUsage for anything else."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit()) or int(port) > 65535:  # noqa: PLR2004
        raise BadUsage(f"not a port: {text}", hint="--metrics-port 9100")
    return host.strip("[]") or "127.0.0.1", int(port)


def _workers(orders: Orders) -> "WorkerHandler":
    from mqctl.codecs.envelope import encode_delivery
    from mqctl.core.clock import SystemClock
    from mqctl.core.units import duration_ms
    from mqctl.handlers.worker import WorkerHandler

    if not orders.words:
        raise BadUsage(
            "no command after --", hint="mqctl consume T -g G --worker 2 -- CMD"
        )
    if orders.rules or orders.stdin != "payload":
        raise BadUsage("--map and --stdin are for commands run for each message")
    limit = None if orders.timeout is None else duration_ms(orders.timeout)
    return WorkerHandler(
        orders.words,
        count=orders.workers,
        clock=SystemClock(),
        protocol=orders.protocol,
        encode=encode_delivery,
        timeout_ms=limit or None,
    )


def _commands(orders: Orders) -> "Handler":
    from mqctl.codecs.envelope import encode_delivery
    from mqctl.core.clock import SystemClock
    from mqctl.core.exit_rules import parse_map
    from mqctl.core.units import duration_ms
    from mqctl.handlers.exec import ExecHandler, ExecOptions

    if not orders.words:
        raise BadUsage("no command after --", hint="mqctl consume T -g G -- CMD")
    limit = None if orders.timeout is None else duration_ms(orders.timeout)
    return ExecHandler(
        orders.words,
        clock=SystemClock(),
        options=ExecOptions(
            stdin=orders.stdin,
            rules=parse_map(orders.rules) if orders.rules else (),
            timeout_ms=limit or None,
        ),
        encode=encode_delivery,
    )


def _code(caught: Caught, *, drained: bool) -> int:
    if caught.number is None:
        return 0
    if caught.number == signal.SIGINT:
        return Interrupted.exit
    return 0 if drained else 128 + caught.number


def _tell(
    context: Context, worker: "Consumer", summary: "Summary", output: Form | None
) -> None:
    if context.quiet:
        return
    if output in {"ndjson", "json", "csv"}:
        _tell_machine(summary)
        return
    counts = [f"{summary.received} received", f"{summary.acked} acknowledged"]
    counts += [
        f"{number} {what}"
        for number, what in (
            (summary.retried, "retried"),
            (summary.dead, "dead"),
            (summary.skipped, "skipped"),
            (summary.duplicates_possible, "possibly repeated"),
        )
        if number
    ]
    if worker.options.exit_when_empty:
        context.note(f"done; left: {_left(summary)} ({', '.join(counts)})")
    else:
        context.note(f"done: {', '.join(counts)}")


def _left(summary: "Summary") -> str:
    from mqctl.core.units import short_duration

    parts = [f"{summary.left_in_work} in work"] if summary.left_in_work else []
    if summary.left_delayed:
        wait = summary.next_delayed_ms
        when = "" if wait is None else f" (next in {short_duration(wait)})"
        parts.append(f"{summary.left_delayed} delayed{when}")
    return ", ".join(parts) or "nothing"


def _tell_machine(summary: "Summary") -> None:
    from mqctl.render.notes import json_bytes

    names = [
        "received",
        "acked",
        "retried",
        "dead",
        "skipped",
        "duplicates_possible",
        "left_in_work",
        "left_delayed",
        "duration_ms",
    ]
    record = {"summary": {name: getattr(summary, name) for name in names}}
    sys.stderr.write(json_bytes(record).decode() + "\n")
    sys.stderr.flush()
