"""mqctl bench: how fast this server is, measured through mqctl's own engine."""

import sys
from contextlib import suppress
from dataclasses import dataclass
from threading import Timer
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mqctl.cli.context import Context
from mqctl.cli.options import Duration, Size, command, switch
from mqctl.cli.records import OutputForm, record_of, show
from mqctl.cli.signals import stopping
from mqctl.core.errors import Interrupted, MqError

if TYPE_CHECKING:
    from mqctl.core.clock import Clock
    from mqctl.engine.bench_crew import Progress
    from mqctl.engine.session import Session

Mode = Literal["produce", "consume", "e2e"]

_SILENT = 0.5  # seconds before there is any progress to be seen
_HURRY = 2.0  # seconds that a second signal leaves a server that does not answer


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app, "bench")
    def bench(
        context: Context,
        mode: Annotated[
            Mode,
            typer.Argument(
                help="What is measured: storing, receiving what was stored before, "
                "or both at once.",
                metavar="[produce|consume|e2e]",
            ),
        ] = "e2e",
        messages: Annotated[
            int | None,
            switch(
                "--messages",
                help="How many messages.",
                show_default="100000, no bound with --duration",
            ),
        ] = None,
        duration: Annotated[
            Duration | None,
            switch("--duration", help="How long, unless --messages are done before."),
        ] = None,
        size: Annotated[
            Size, switch("--size", help="Bytes of each message, 28B or more.")
        ] = "1KB",
        partitions: Annotated[
            int, switch("--partitions", help="Partitions of the topic.")
        ] = 4,
        batch: Annotated[
            int,
            switch("--batch", help="Messages in one pipelined batch of a producer."),
        ] = 500,
        producers: Annotated[
            int, switch("--producers", help="Processes that store messages.")
        ] = 1,
        consumers: Annotated[
            int, switch("--consumers", help="Processes that receive messages.")
        ] = 1,
        rate: Annotated[
            str | None,
            switch(
                "--rate",
                help="Send so many, evenly; latency counts from when each is due.",
                metavar="N/s",
            ),
        ] = None,
        warmup: Annotated[
            Duration,
            switch("--warmup", help="Work for this long before anything is counted."),
        ] = "0",
        keep: Annotated[
            bool, switch("--keep", help="Keep the topic, and say its name.")
        ] = False,
        output: OutputForm = None,
    ) -> None:
        """Measure how fast messages are stored and received on this server.

        A topic with a random name is used and removed at the end. It occupies the
        server's memory meanwhile: about 1.2 KB for a message of 1 KB. Exit 1 when
        messages are lost.

        Example: mqctl bench e2e --rate 2000/s --duration 10s
        """
        from mqctl.core import units
        from mqctl.engine.bench_load import Workload

        if messages is None:
            messages = 0 if duration and mode != "consume" else 100_000
        load = Workload(
            mode=mode,
            messages=messages,
            duration_ms=units.duration_ms(duration) if duration else 0,
            size=units.size_bytes(size),
            partitions=partitions,
            batch=batch,
            producers=producers,
            consumers=consumers,
            rate=units.rate(rate) if rate else 0.0,
            warmup_ms=units.duration_ms(warmup),
        )
        from mqctl.engine import bench as engine
        from mqctl.engine.bench_crew import Watch

        session = context.session()
        topic = context.topic(f"bench-{session.random.getrandbits(32):08x}")
        teller = Teller(session.clock, seen=sys.stderr.isatty() and not context.quiet)
        with stopping(lambda hard: _hurry(session) if hard else None, {}) as caught:

            def check() -> None:
                if caught.number is not None:
                    raise Interrupted("stopped by a signal", number=caught.number)

            watch = Watch(check, teller.tell, context.warn)
            try:
                result, cause = engine.run(session, topic, load, watch, keep=keep)
            finally:
                teller.clear()
        show(context, [record_of(result)], output, single=True)
        if cause is not None:
            raise cause
        if result.lost:
            raise MqError(f"{result.lost} messages are lost", topic=topic)


def _hurry(session: "Session") -> None:
    """Wait no longer than that for a server that may not answer any more."""
    cut = Timer(_HURRY, session.wire.abort)
    cut.daemon = True
    cut.start()


@dataclass(slots=True)
class Teller:
    """Tells on stderr how far it is, once it has taken a while."""

    clock: "Clock"
    seen: bool
    doing: str = ""
    began: float = 0.0
    width: int = 0

    def tell(self, progress: "Progress") -> None:
        """Write over the line before."""
        now = self.clock.monotonic()
        if progress.doing != self.doing:
            self.doing, self.began = progress.doing, now
        seconds = now - self.began
        if not self.seen or seconds < _SILENT:
            return
        done, total = progress.done, progress.total
        text = f"{self.doing}: {done:,}" + (f" of {total:,}" if total else "")
        text += f", {done / seconds:,.0f}/s"
        if total and done:
            left = max(0.0, (total - done) * seconds / done)
            text += f", {left:,.0f} s left"
        self._write(text)

    def clear(self) -> None:
        """Leave nothing of it on the screen."""
        if self.width:
            self._write("")

    def _write(self, text: str) -> None:
        with suppress(OSError):  # the terminal has gone
            sys.stderr.write(f"\r{text:{self.width}}" + ("" if text else "\r"))
            sys.stderr.flush()
        self.width = len(text)
