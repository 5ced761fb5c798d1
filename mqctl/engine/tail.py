"""Looking at entries without being anybody: no group, no lease, no trace.

Streams are read page by page and merged by id. Following remembers the last id of
each stream: what is printed next is always above it, also after a lost connection.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from mqctl.codecs import dead_letter, native
from mqctl.core import ids
from mqctl.core.clock import rfc3339
from mqctl.core.errors import BadUsage, Undecodable, Unreachable
from mqctl.core.filters import Filter
from mqctl.core.keys import KeySpace, slot_of
from mqctl.core.message import DeadLetter, Message
from mqctl.engine import admin, payloads, topics
from mqctl.engine.session import Session

if TYPE_CHECKING:
    from mqctl.store.wire import Command

PAGE = 200
_DECODE = 100  # entries whose bodies are loaded at once
_REFRESH = 5.0  # seconds between looks for new partitions
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_POLL = 0.1  # seconds between reads where one cannot wait on all streams at once

Item = Message | DeadLetter


@dataclass(frozen=True, slots=True)
class Source:
    """A stream to look at: a partition, or with `partition` None the dead letters."""

    topic: str
    partition: int | None

    def key(self, keys: KeySpace) -> str:
        """Return the stream's key."""
        if self.partition is None:
            return keys.dlq(self.topic)
        return keys.partition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class Raw:
    """An entry as read: its source, id and fields."""

    source: Source
    id: str
    flat: list[bytes]

    @property
    def order(self) -> tuple[int, int]:
        """Return the id as Redis orders it."""
        return ids.parse(self.id)


@dataclass(slots=True)
class Reader:
    """Turns entries into messages; `warn` is told what cannot be shown as it was."""

    session: Session
    warn: Callable[[str], None]
    wanted: Filter = field(default_factory=Filter)

    def items(self, raws: Iterable[Raw], chunk: int = _DECODE) -> Iterator[Item]:
        """Yield the messages that the filter takes; one trip per chunk of bodies."""
        source = iter(raws)
        while part := list(islice(source, chunk)):
            yield from self.decoded(part)

    def decoded(self, raws: Sequence[Raw]) -> list[Item]:
        """Return the messages that the filter takes; one trip when a body is aside."""
        found = [self._decode(raw) for raw in raws]
        messages = [d.message if isinstance(d, DeadLetter) else d for d in found]
        if any(message.payload_ref for message in messages):
            loaded = payloads.load(self.session, messages)
            pairs = zip(found, messages, loaded, strict=True)
            found = [self._with_body(item, m, body) for item, m, body in pairs]
        if not self.wanted:
            return found
        return [
            item
            for item in found
            if self.wanted.takes(item.message if isinstance(item, DeadLetter) else item)
        ]

    def _decode(self, raw: Raw) -> Item:
        topic, index = raw.source.topic, raw.source.partition
        if index is None:
            return dead_letter.decode(topic, raw.id, raw.flat)
        try:
            return native.decode(topic, index, raw.id, raw.flat)
        except Undecodable as error:
            self.warn(f"{topic}[{index}]: {error.message}")
            ms = ids.parse(raw.id)[0]
            return Message(
                topic, index, raw.id, error.payload, None, {}, rfc3339(ms), ms
            )

    def _with_body(self, item: Item, message: Message, body: Message | None) -> Item:
        if body is None:
            self.warn(f"{message.topic}: the body of {message.id} is gone")
            body = replace(message, payload=b"", payload_ref=None)
        return replace(item, message=body) if isinstance(item, DeadLetter) else body


def sources(
    session: Session, topic: str, partitions: Sequence[int] = (), *, dead: bool = False
) -> list[Source]:
    """Return the streams of a topic, or of its dead letters.

    NotFound when the topic is not there; dead letters may outlive it. BadUsage for a
    partition out of range.
    """
    if dead:
        if not session.wire.call("EXISTS", session.keys.dlq(topic)):
            topics.require(session, topic)
        return [Source(topic, None)]
    count = topics.require(session, topic)
    wrong = [i for i in partitions if i >= count]
    if wrong:
        raise BadUsage(
            f"partition {wrong[0]} is out of range: topic {topic} has {count} "
            f"(0 to {count - 1})",
            topic=topic,
            partition=wrong[0],
        )
    return [Source(topic, i) for i in partitions or range(count)]


def entries(
    session: Session,
    streams: Sequence[Source],
    first: str = "-",
    to: str | Mapping[Source, str] = "+",
    *,
    newest_first: bool = False,
    page: int = PAGE,
) -> Iterator[Raw]:
    """Yield entries between two ids, both included, in id order over all streams.

    `to` may differ from stream to stream.
    """
    read = _backward if newest_first else _forward
    until = to if isinstance(to, Mapping) else dict.fromkeys(streams, to)
    return merge(
        *(read(session, source, first, end, page) for source, end in until.items()),
        key=lambda raw: raw.order,
        reverse=newest_first,
    )


def last(
    reader: Reader,
    streams: Sequence[Source],
    count: int,
    first: str = "-",
    to: str | Mapping[Source, str] = "+",
) -> list[Item]:
    """Return the newest `count` messages the reader takes, oldest first."""
    page = PAGE if reader.wanted else max(1, min(count, PAGE))
    raws = entries(reader.session, streams, first, to, newest_first=True, page=page)
    return list(islice(reader.items(raws, min(page, _DECODE)), count))[::-1]


def _forward(
    session: Session, source: Source, first: str, to: str, page: int
) -> Iterator[Raw]:
    key, cursor = source.key(session.keys), first
    while True:
        rows = session.wire.call("XRANGE", key, cursor, to, "COUNT", page)
        for raw_id, flat in rows:
            yield Raw(source, raw_id.decode(), flat or [])
        if len(rows) < page:
            return
        cursor = ids.after(rows[-1][0].decode())


def _backward(
    session: Session, source: Source, first: str, to: str, page: int
) -> Iterator[Raw]:
    key, cursor = source.key(session.keys), to
    while True:
        rows = session.wire.call("XREVRANGE", key, cursor, first, "COUNT", page)
        for raw_id, flat in rows:
            yield Raw(source, raw_id.decode(), flat or [])
        if len(rows) < page:
            return
        cursor = ids.before(rows[-1][0].decode())


def ends(session: Session, streams: Sequence[Source]) -> dict[Source, str]:
    """Return the highest id each stream has given out; one trip."""
    infos = admin.streams(session, [s.key(session.keys) for s in streams])
    return {s: i.generated_id for s, i in zip(streams, infos, strict=True)}


@dataclass(slots=True)
class Follow:
    """Yields what is appended, in rounds; a round is in id order.

    `seen` is the last id taken from each stream. `partitions` empty means all, also
    those that are added later. `pause` waits for that many seconds; `alive` is called
    in every round, also in one that brings nothing.
    """

    reader: Reader
    seen: dict[Source, str]
    note: Callable[[str], None]
    pause: Callable[[float], None]
    alive: Callable[[], None]
    grows: bool = True
    block_ms: int = 1000
    _looked: float = 0.0  # by the monotonic clock
    _gone: set[str] = field(default_factory=set)

    def rounds(self) -> Iterator[list[Item]]:
        """Yield new messages for ever, through lost connections."""
        session = self.reader.session
        self._looked = session.clock.monotonic()
        wait = 0.0
        while True:
            self.alive()
            try:
                if wait:
                    session.reopen()
                    self.note("connected again")
                    wait = 0.0
                self._refresh()
                found = self._read()
            except Unreachable as error:
                if not wait:
                    self.note(f"{error.message}; trying again")
                wait = min(wait * 2 or _FIRST_PAUSE, _LONGEST_PAUSE)
                self.pause(wait)
                continue
            yield found

    def _read(self) -> list[Item]:
        session = self.reader.session
        names = {s.key(session.keys): s for s in self.seen}
        wire = session.wire
        if wire.cluster and len({slot_of(name) for name in names}) > 1:
            self.pause(_POLL)
            replies = wire.batch(
                [
                    ("XREAD", "COUNT", PAGE, "STREAMS", name, self.seen[source])
                    for name, source in names.items()
                ]
            )
        else:
            command: Command = (
                *("XREAD", "COUNT", PAGE, "BLOCK", self.block_ms, "STREAMS"),
                *names,
                *self.seen.values(),
            )
            replies = wire.batch([command])
        found: list[Raw] = []
        full: list[tuple[int, int]] = []
        for reply in replies:
            for key, rows in admin.checked(reply, "following") or ():
                source = names[admin.text(key)]
                raws = [Raw(source, i.decode(), flat or []) for i, flat in rows]
                found += raws
                if len(raws) == PAGE:
                    full.append(raws[-1].order)
        # What a full page may still come before is left for the next round.
        taken = sorted(
            (raw for raw in found if not full or raw.order <= min(full)),
            key=lambda raw: raw.order,
        )
        items = self.reader.decoded(taken)
        self.seen.update((raw.source, raw.id) for raw in taken)
        return items

    def _refresh(self) -> None:
        """Take in new partitions; say once that a topic was deleted."""
        session = self.reader.session
        now = session.clock.monotonic()
        if not self.grows or now - self._looked < _REFRESH:
            return
        self._looked = now
        for topic in dict.fromkeys(source.topic for source in self.seen):
            if not topics.exists(session, topic):
                if topic not in self._gone:
                    self.note(f"topic {topic} was deleted; waiting for it")
                self._gone.add(topic)
                continue
            self._gone.discard(topic)
            for index in range(topics.count(session, topic)):
                self.seen.setdefault(Source(topic, index), "0-0")


__all__ = ["Follow", "Item", "Raw", "Reader", "Source", "ends", "entries", "last"]
