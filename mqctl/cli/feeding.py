"""Input to messages: every form that `produce` reads, sent in the order read."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from mqctl.cli import inputs
from mqctl.core.errors import BadData
from mqctl.core.message import Outgoing

if TYPE_CHECKING:
    from mqctl.cli.context import Context
    from mqctl.cli.signals import Interruptible
    from mqctl.engine.producer import Producer
    from mqctl.engine.special import Special

InputForm = Literal["lines", "null", "raw", "json", "ndjson", "csv"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How input becomes messages.

    `dedupe` is a text, or `header:NAME`. `done` has a 1 for each line that an earlier
    run has stored. `rate` is messages per second, 0 = no limit.
    """

    form: InputForm
    delimiter: bytes
    max_retries: int
    max_bytes: int
    key: bytes | None = None
    separator: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    partition: int | None = None
    keep_partition: bool = False
    start_line: int = 1
    skip_bad: bool = False
    skip_empty: bool = False
    dedupe: str | None = None
    special: "Special | None" = None
    rate: float = 0.0
    done: bytearray = field(default_factory=bytearray)

    def wants(self, line: int) -> bool:
        """Tell whether a line is to be sent."""
        if line < self.start_line:
            return False
        return line >= len(self.done) or not self.done[line]

    @property
    def plain(self) -> bool:
        """Tell whether each record is a payload and nothing else is asked for."""
        return (
            self.form in {"lines", "null"}
            and self.separator is None
            and self.special is None
            and not self.skip_empty
            and not self.rate
            and not self.done
        )


class Feeder:
    """Reads input and hands messages to a producer.

    `skipped` counts bad lines passed over; `on_skip` is told of each. A signal ends
    the feeding between two messages, never in the middle of one.
    """

    def __init__(
        self,
        producer: "Producer",
        plan: Plan,
        interrupt: "Interruptible",
        on_skip: Callable[[BadData], None],
    ) -> None:
        self._producer = producer
        self._plan = plan
        self._interrupt = interrupt
        self._on_skip = on_skip
        self._next = time.monotonic()
        self.skipped = 0

    def arguments(self, texts: list[str]) -> None:
        """Send arguments: text, `@FILE`, `-` for standard input."""
        number = 0
        for text in texts:
            if text == "-":
                number = self.records(inputs.standard(), number)
                continue
            number += 1
            self._one(self._argument(text), number)

    def _argument(self, text: str) -> bytes:
        if not text.startswith("@"):
            return os.fsencode(text)
        fd = inputs.open_file(text[1:])
        try:
            return inputs.whole(fd, self._plan.max_bytes)
        finally:
            os.close(fd)

    def whole(self, fd: int, number: int) -> None:
        """Send everything a descriptor has as one message."""
        self._one(inputs.whole(fd, self._plan.max_bytes, self._interrupt), number)

    def records(self, fd: int, before: int) -> int:
        """Send the records of a descriptor; return the number of the last line."""
        plan, producer = self._plan, self._producer
        if plan.form == "csv":
            return self._csv(fd, before)
        line = before
        for block in self._blocks(fd, plan.delimiter):
            skip = max(0, min(len(block), plan.start_line - 1 - line))
            line += skip
            if plan.plain:
                add, key, headers = producer.add, plan.key, plan.headers
                for payload in block[skip:]:
                    line += 1
                    add(payload, key, headers, plan.partition, plan.max_retries, line)
            else:
                for payload in block[skip:]:
                    line += 1
                    self._one(payload, line)
        return line

    def _blocks(self, fd: int, delimiter: bytes) -> Iterator[list[bytes]]:
        """Yield blocks of records; while none comes, all that was sent is settled."""
        records = inputs.Records(fd, delimiter, self._plan.max_bytes, self._interrupt)
        for block in records:
            if block:
                self._producer.tick()
                yield block
            else:
                self._producer.drain()
            self._interrupt.check()

    def _csv(self, fd: int, before: int) -> int:
        from mqctl.codecs.csv_input import decode_rows

        lines = (
            record + b"\n" for block in self._blocks(fd, b"\n") for record in block
        )
        line = before
        for found in decode_rows(lines):
            if isinstance(found, BadData):
                self._bad(found)
                continue
            line = before + found.line
            if self._plan.wants(line):
                self._send(self._dressed(replace(found, line=line)))
        return line

    def _one(self, raw: bytes, line: int) -> None:
        plan = self._plan
        if not plan.wants(line) or (plan.skip_empty and not raw):
            return
        try:
            message = self._message(raw, line)
        except BadData as error:
            self._bad(error)
            return
        self._send(message)

    def _bad(self, error: BadData) -> None:
        if not self._plan.skip_bad:
            raise error
        self.skipped += 1
        self._on_skip(error)

    def _message(self, raw: bytes, line: int) -> Outgoing:
        plan = self._plan
        if plan.form == "ndjson":
            from mqctl.codecs import envelope

            return self._dressed(envelope.decode(raw, line))
        key, payload = plan.key, raw
        if plan.separator is not None:
            key, found, payload = raw.partition(plan.separator)
            if not found:
                text = plan.separator.decode("utf-8", "replace")
                raise BadData(f"line {line} has no key separator {text!r}", line=line)
        if plan.form == "json":
            check_json(payload, line)
        return Outgoing(payload, key, plan.headers, plan.partition, None, line)

    def _dressed(self, message: Outgoing) -> Outgoing:
        """Add what the command line says to a message that carries its own."""
        plan = self._plan
        partition = plan.partition
        if partition is None and (plan.keep_partition or plan.form == "csv"):
            partition = message.partition
        headers = message.headers
        if plan.headers:
            headers = {**headers, **plan.headers}
        key = message.key if plan.key is None else plan.key
        return replace(message, headers=headers, partition=partition, key=key)

    def _send(self, message: Outgoing) -> None:
        special = self._plan.special
        if special is not None and self._plan.dedupe is not None:
            special = replace(special, dedupe=self._dedupe(message))
        self._producer.send(message, special)
        if self._plan.rate:
            self._pace()

    def _dedupe(self, message: Outgoing) -> str:
        given = self._plan.dedupe or ""
        if not given.startswith("header:"):
            return given
        return message.headers.get(given.removeprefix("header:"), "")

    def _pace(self) -> None:
        """Wait until the next message is due; what was sent is on its way by then."""
        self._next += 1 / self._plan.rate
        wait = self._next - time.monotonic()
        if wait > 0:
            self._producer.drain()
            self._interrupt.sleep(wait)
        elif wait < -1:
            self._next = time.monotonic()
        self._interrupt.check()


def check_json(payload: bytes, line: int) -> None:
    """Raise BadData for a payload that is not JSON."""
    import orjson

    try:
        orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise BadData(
            f"line {line} is not JSON: {error.msg} (byte {error.pos + 1})", line=line
        ) from None


def stdin(context: "Context") -> int:
    """Return standard input; a terminal is told what is expected of it."""
    fd = inputs.standard()
    if os.isatty(fd):
        context.note("reading messages from the terminal, one per line; Ctrl-D ends")
    return fd


def done_lines(path: str) -> bytearray:
    """Return a 1 for each line that an earlier `--print ndjson` says is stored."""
    import orjson

    done = bytearray()
    fd = inputs.open_file(path)
    number = 0
    for block in inputs.Records(fd, b"\n", 1 << 30):
        for raw in block:
            number += 1
            try:
                found = orjson.loads(raw)
                line, status = found["line"], found["status"]
            except (ValueError, KeyError, TypeError):
                raise BadData(
                    f"line {number} of {path} is not what --print ndjson writes",
                    file=path,
                    line=number,
                ) from None
            if status in {"stored", "duplicate", "delayed"}:
                if line >= len(done):
                    done.extend(bytes(max(line + 1 - len(done), 4096)))
                done[line] = 1
    os.close(fd)
    return done
