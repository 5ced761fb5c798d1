"""Producing: pipelined appends, two batches in flight, every reply checked.

Nothing is sent twice. When it fails half way the tally says what is stored, what is
not, and what nobody can know.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, NoReturn

from mqctl.codecs import native
from mqctl.core import headers as h
from mqctl.core.clock import rfc3339
from mqctl.core.errors import BadUsage, MqError, TooLarge, UnknownOutcome
from mqctl.core.message import Outgoing
from mqctl.core.partition import choose, key_partition
from mqctl.engine import payloads, topics
from mqctl.engine.packing import EntryPacker
from mqctl.engine.session import Session
from mqctl.store.wire import Arg, ConnectionLost, Reply, ServerError, pack

if TYPE_CHECKING:  # most runs send nothing special: loaded when one does
    from mqctl.engine.special import Special

_BATCH_BYTES = 1 << 16  # what a socket takes at once while the server is busy
_OVERHEAD = 300  # bytes of an entry beside its payload, about
_COUNT_AGE = 5.0
_KEYS_KNOWN = 100_000
_IN_FLIGHT = 2


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """How to produce. `max_len` 0 = nothing is cut; `batch` in messages."""

    partitions: int = 1
    create: bool = True
    max_retries: int = 3
    max_len: int = 0
    max_len_exact: bool = True
    batch: int = 500
    max_bytes: int = 64_000_000
    payload_ttl_ms: int = 0

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise BadUsage("a topic has at least one partition")
        if self.max_retries < 0 or self.max_len < 0 or self.batch < 1:
            raise BadUsage("counts cannot be negative, a batch holds at least 1")


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of one message.

    `status` is stored, duplicate, delayed, failed or unknown. A duplicate has the id
    of the first one (`retry:UUID` when that waits); a delayed message has no id but
    its retry item and due time.
    """

    line: int
    status: str
    partition: int
    id: str | None
    key: bytes | None
    ts_ms: int
    receipt: str | None = None
    error: str | None = None
    item: str | None = None
    due_at_ms: int | None = None


_Row = tuple[int, int, bytes | None, str | None, int]  # line partition key receipt ms


@dataclass(slots=True)
class Tally:
    """The account of a run. Lines are input line numbers, 1-based.

    `first_missing` is the first line known or feared not to be stored,
    `stored_after` how many later ones are stored; `unknown` are lines whose reply
    was lost.
    """

    stored: int = 0
    duplicates: int = 0
    delayed: int = 0
    failed: list[tuple[int, str]] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    first_missing: int | None = None
    stored_after: int = 0
    cause: MqError | None = None

    def miss(self, line: int) -> None:
        """Note that a line is not, or perhaps not, stored."""
        if self.first_missing is None or line < self.first_missing:
            self.first_missing = line


class Producer:
    """Sends messages to one topic over the session's wire.

    `add` buffers and may send; `ship` sends what is buffered; `drain` also waits for
    every reply. After the first failure each of them raises it, once all replies
    that still come have been counted in `tally`. `report` gets what became of the
    messages, batch by batch, in input order.
    """

    def __init__(
        self,
        session: Session,
        topic: str,
        options: ProducerOptions | None = None,
        *,
        report: Callable[[list[Sent]], None] | None = None,
    ) -> None:
        self._session = session
        self.topic = topic
        self.options = options or ProducerOptions()
        self._report = report
        self.tally = Tally()
        self.partitions = self._open()
        self._packer = EntryPacker(
            session.keys,
            topic,
            max_len=self.options.max_len,
            exact=self.options.max_len_exact,
        )
        self._batch = self.options.batch
        self._max_bytes = self.options.max_bytes
        self._buffer: list[bytes] = []
        self._rows: list[_Row] = []
        self._bytes = 0
        self._flight: deque[tuple[list[_Row], bool]] = deque()
        self._known: dict[bytes, int] = {}
        self._counted = session.clock.monotonic()
        self._now = 0
        self.tick()

    def _open(self) -> int:
        if self.options.create:
            return topics.ensure(self._session, self.topic, self.options.partitions)
        return topics.require(self._session, self.topic)

    @property
    def first_unsent(self) -> int | None:
        """Return the line of the first message that is buffered and not sent."""
        return self._rows[0][0] if self._rows else None

    def tick(self) -> None:
        """Take the time: the timestamp of what is added from now on."""
        self._now = self._session.clock.now_ms()
        self._packer.at(self._now)

    def send(self, message: Outgoing, special: "Special | None" = None) -> None:
        """Add one message record; one that asks for something special goes at once."""
        if special is not None and (special.dedupe is not None or special.later):
            self._send_special(message, special)
            return
        self.add(
            message.payload,
            message.key,
            message.headers,
            message.partition,
            self.options.max_retries
            if message.max_retries is None
            else message.max_retries,
            message.line,
            message.receipt,
        )

    def add(
        self,
        payload: bytes,
        key: bytes | None,
        headers: dict[str, str],
        partition: int | None,
        max_retries: int,
        line: int,
        receipt: str | None = None,
    ) -> None:
        """Buffer one message; sends a batch when one is full.

        `partition` must be within the topic's count. Raises TooLarge before anything
        of the message is sent.
        """
        size = len(payload)
        self._check_size(size, line)
        if partition is None:
            index = self._partition(key, headers)
        else:
            index = self._forced(partition, line)
            headers = {**headers, h.FORCE_PARTITION: str(index)}
        if size > payloads.SURE and payloads.is_large(payload):
            ref = self._store_body((line, index, key, receipt, self._now), payload)
            packed = self._aside(index, payload, ref, key, headers, max_retries)
            self._buffer.append(packed)
        else:
            self._buffer += self._packer.pieces(
                index, payload, key, headers, max_retries
            )
        self._rows.append((line, index, key, receipt, self._now))
        self._bytes += size + _OVERHEAD
        if len(self._rows) >= self._batch or self._bytes >= _BATCH_BYTES:
            self.ship()

    def _send_special(self, message: Outgoing, special: "Special") -> None:
        from mqctl.engine.special import is_pipelined, once

        special.check(message.line)
        self._check_size(len(message.payload), message.line)
        if message.partition is not None:
            index = self._forced(message.partition, message.line)
        else:
            by = message.key
            if by is None and special.dedupe is not None:
                by = special.dedupe.encode("utf-8", "surrogateescape")
            index = self._partition(by, message.headers)
        limit = message.max_retries
        row = (message.line, index, message.key, message.receipt, self._now)
        if is_pipelined(message, special):
            packed = pack(
                once(
                    self._session,
                    self.topic,
                    index,
                    message,
                    special,
                    max_retries=self.options.max_retries if limit is None else limit,
                    bound=self._bound(),
                )
            )
            self._buffer.append(packed)
            self._rows.append(row)
            self._bytes += len(packed)
            if len(self._rows) >= self._batch or self._bytes >= _BATCH_BYTES:
                self.ship()
            return
        self.drain()
        answer = self._answer(row, message, special)
        sent = self._special_sent(row, answer)
        if self._report:
            self._report([sent])
        self.tick()

    def _answer(
        self, row: _Row, message: Outgoing, special: "Special"
    ) -> tuple[str, str | int | bytes, str | None]:
        from mqctl.engine.special import send

        limit = message.max_retries
        try:
            return send(
                self._session,
                self.topic,
                row[1],
                message,
                special,
                max_retries=self.options.max_retries if limit is None else limit,
                bound=self._bound(),
                payload_ttl_ms=self.options.payload_ttl_ms,
            )
        except ConnectionLost as error:
            self._flight.append(([row], False))
            self._lost(error)
        except MqError as error:
            self.tally.cause = error
            self._refused(row, error.message)
            raise

    def _special_sent(
        self, row: _Row, answer: tuple[str, str | int | bytes, str | None]
    ) -> Sent:
        line, index, key, receipt, ms = row
        status, value, item = answer
        if status == "delayed":
            self.tally.delayed += 1
            due = int(value)
            return Sent(
                line, status, index, None, key, ms, receipt, item=item, due_at_ms=due
            )
        if status == "duplicate" and isinstance(value, bytes):
            from mqctl.engine.special import first_of

            self.tally.duplicates += 1
            first, entry_id = first_of(value)
            where = index if first is None else first
            return Sent(line, status, where, entry_id, key, ms, receipt)
        self.tally.stored += 1
        return Sent(line, status, index, str(value), key, ms, receipt)

    def _bound(self) -> list[Arg]:
        if not self.options.max_len:
            return []
        mode = "=" if self.options.max_len_exact else "~"
        return ["MAXLEN", mode, self.options.max_len]

    def _check_size(self, size: int, line: int) -> None:
        if size > self._max_bytes:
            raise TooLarge(
                f"message has {size} bytes, {self.options.max_bytes} are allowed",
                hint="--max-bytes raises the limit",
                line=line or None,
            )

    def _partition(self, key: bytes | None, headers: dict[str, str]) -> int:
        count = self.partitions
        if key is None or h.FORCE_PARTITION in headers:
            if count == 1:
                return 0
            if headers and h.FORCE_PARTITION in headers:
                forced = headers[h.FORCE_PARTITION]
                return choose(key, count, forced, self._session.random)
            return int(self._session.random.random() * count)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _KEYS_KNOWN:
                self._known.clear()
            known = self._known[key] = key_partition(key, count)
        return known

    def _forced(self, partition: int, line: int) -> int:
        if 0 <= partition < self.partitions:
            return partition
        raise BadUsage(
            f"partition {partition} is out of range: topic {self.topic} has "
            f"{self.partitions} (0 to {self.partitions - 1})",
            line=line or None,
            topic=self.topic,
            partition=partition,
        )

    def _store_body(self, row: _Row, payload: bytes) -> str:
        """Store a body aside once all before it is counted; return its key."""
        self.drain()
        try:
            return payloads.store(
                self._session,
                self.topic,
                row[1],
                payload,
                ttl_ms=self.options.payload_ttl_ms,
            )
        except MqError as error:
            self.tally.cause = error
            self._refused(row, error.message)
            raise

    def _refused(self, row: _Row, why: str) -> None:
        line, index, key, receipt, ms = row
        self.tally.failed.append((line, why))
        self.tally.miss(line)
        if self._report:
            self._report([Sent(line, "failed", index, None, key, ms, receipt, why)])

    def _aside(
        self,
        index: int,
        payload: bytes,
        ref: str,
        key: bytes | None,
        headers: dict[str, str],
        max_retries: int,
    ) -> bytes:
        fields = native.aside_fields(
            topic=self.topic,
            partition=index,
            payload=payload,
            ref=ref,
            key=key,
            headers=headers,
            timestamp=rfc3339(self._now),
            retry_count=0,
            max_retries=max_retries,
        )
        stream = self._session.keys.partition(self.topic, index)
        return pack(("XADD", stream, *self._bound(), "*", *fields))

    def ship(self) -> None:
        """Send what is buffered; waits only when two batches are in flight."""
        if self.tally.cause is not None:
            raise self.tally.cause
        if not self._rows:
            return
        rows, data = self._rows, self._buffer
        self._rows, self._buffer, self._bytes = [], [], 0
        now = self._session.clock.monotonic()
        recount = now - self._counted > _COUNT_AGE
        if recount:
            self._counted = now
            meta = self._session.keys.meta(self.topic)
            data.append(pack(("HGET", meta, "partitionCount")))
        self._flight.append((rows, recount))
        try:
            self._session.wire.send(b"".join(data), len(rows) + recount)
        except ConnectionLost as error:
            self._lost(error)
        if len(self._flight) >= _IN_FLIGHT:
            self._collect()
        self.tick()

    def drain(self) -> None:
        """Send what is buffered and wait until every reply is counted."""
        self.ship()
        while self._flight:
            self._collect()

    def _collect(self) -> None:
        rows, recount = self._flight.popleft()
        replies: list[Reply] = []
        try:
            self._session.wire.receive_into(replies, len(rows) + recount)
        except ConnectionLost as error:
            self._count(rows[: len(replies)], replies)
            self._flight.appendleft((rows[len(replies) :], False))
            self._lost(error)
        if recount:
            self._recounted(replies.pop())
        self._count(rows, replies)
        if self.tally.cause is not None:
            self._fail()

    def _recounted(self, stored: Reply) -> None:
        if isinstance(stored, bytes):
            count = topics.counted(self.topic, stored)
            if count != self.partitions:
                self.partitions = count
                self._known.clear()

    def _count(self, rows: list[_Row], replies: list[Reply]) -> None:
        tally = self.tally
        if not self._report and tally.first_missing is None and _all_ids(replies):
            tally.stored += len(replies)
            return
        told = [
            self._outcome(row, reply) for row, reply in zip(rows, replies, strict=False)
        ]
        if self._report and told:
            self._report(told)

    def _outcome(self, row: _Row, reply: Reply) -> Sent:
        line, tally = row[0], self.tally
        if isinstance(reply, ServerError):
            cause = reply.explained(f"storing line {line}" if line else "storing")
            tally.cause = tally.cause or cause
            tally.failed.append((line, reply.text))
            tally.miss(line)
            return _failed(row, reply.text)
        if tally.first_missing is not None:
            tally.stored_after += 1
        if isinstance(reply, bytes):
            return self._special_sent(row, ("stored", reply.decode(), None))
        if reply[0] == 1:
            return self._special_sent(row, ("stored", reply[1].decode(), None))
        return self._special_sent(row, ("duplicate", reply[1], None))

    def _lost(self, error: ConnectionLost) -> NoReturn:
        told: list[Sent] = []
        for rows, _ in self._flight:
            for line, index, key, receipt, ms in rows:
                self.tally.unknown.append(line)
                self.tally.miss(line)
                told.append(
                    Sent(line, "unknown", index, None, key, ms, receipt, error.message)
                )
        self._flight.clear()
        if not told:
            raise error
        if self._report:
            self._report(told)
        self.tally.cause = UnknownOutcome(
            f"{error.message}; {len(told)} messages may or may not be stored"
        )
        raise self.tally.cause from error

    def _fail(self) -> None:
        while self._flight:
            self._collect_rest()
        cause = self.tally.cause
        if cause is not None:
            raise cause

    def _collect_rest(self) -> None:
        rows, recount = self._flight.popleft()
        replies: list[Reply] = []
        try:
            self._session.wire.receive_into(replies, len(rows) + recount)
        except ConnectionLost as error:
            self._count(rows[: len(replies)], replies)
            self._flight.appendleft((rows[len(replies) :], False))
            self._lost(error)
        self._count(rows, replies[: len(rows)])


def _failed(row: _Row, error: str) -> Sent:
    line, index, key, receipt, ms = row
    return Sent(line, "failed", index, None, key, ms, receipt, error)


def _all_ids(replies: list[Reply]) -> bool:
    return all(type(reply) is bytes for reply in replies)


def ranges(lines: list[int], most: int = 20) -> list[list[int]]:
    """Return sorted line numbers as [first, last] ranges, `most` of them."""
    made: list[list[int]] = []
    for line in sorted(lines):
        if made and line == made[-1][1] + 1:
            made[-1][1] = line
        else:
            made.append([line, line])
    return list(islice(made, most))
