"""Replaying dead letters: a copy each, back where it came from, counted once.

Where dead letters, partition and history share a slot a copy is one script: append,
record, and on request delete, together or not at all. Elsewhere the same steps run in
that order, so that a crash in between costs a repetition, never a message. A run that
was interrupted is simply run again: what was replayed is recorded and skipped.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from mqctl.codecs import dead_letter, native
from mqctl.core import headers as h
from mqctl.core.clock import rfc3339
from mqctl.core.errors import MqError, NotFound
from mqctl.core.filters import like
from mqctl.core.message import DeadLetter, Message
from mqctl.core.partition import choose, key_partition
from mqctl.engine import admin, payloads, tail, topics
from mqctl.engine.dead_letters import Replays
from mqctl.engine.session import Session
from mqctl.engine.tail import Raw
from mqctl.store import scripts
from mqctl.store.wire import Reply, ServerError

_PAGE = 100
_IDS = 1000  # above that many the report names none


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What to replay and how; `limit` and `rate` (per second) 0 = no bound.

    `reason` is a glob. `to` names another topic. A dead letter that has been replayed
    before is skipped unless `again`; one whose message was replayed `max_replays`
    times already is skipped always.
    """

    to: str | None = None
    limit: int = 0
    rate: float = 0.0
    reason: str | None = None
    delete: bool = False
    max_replays: int = 3
    all_groups: bool = False
    again: bool = False
    dry_run: bool = False


@dataclass(slots=True)
class Report:
    """The account of a replay.

    `selected` were meant and looked at; each of them was replayed (or would be),
    skipped or failed. `left` were not looked at, because it ended early.
    """

    selected: int = 0
    replayed: int = 0
    skipped_limit: int = 0
    skipped_replayed: int = 0
    deleted: int = 0
    left: int = 0
    unaddressed: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    targets: Counter[tuple[str, int, str | None]] = field(default_factory=Counter)
    ids: list[str] = field(default_factory=list)
    cause: MqError | None = None

    def record(self, action: str, topic: str, *, dry_run: bool) -> dict[str, object]:
        """Return the fields that are printed; `ids` are the dead letters' own."""
        record: dict[str, object] = {
            "action": action,
            "topic": topic,
            "dry_run": dry_run,
            "selected": self.selected,
            "replayed": self.replayed,
            "skipped_limit": self.skipped_limit,
            "skipped_replayed": self.skipped_replayed,
            "failed": len(self.failures),
            "deleted": self.deleted,
            "reasons": dict(sorted(self.reasons.items())),
            "targets": [
                {"topic": name, "partition": index, "group": group, "count": count}
                for (name, index, group), count in self._ordered_targets()
            ],
        }
        if len(self.ids) <= _IDS:
            record["ids"] = self.ids
        return record

    def _ordered_targets(self) -> list[tuple[tuple[str, int, str | None], int]]:
        return sorted(
            self.targets.items(), key=lambda item: (*item[0][:2], item[0][2] or "")
        )


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy to be made: `message` with its body, `history` as it stands."""

    id: str
    message: Message
    partition: int
    headers: dict[str, str]
    history: bytes


class Replay:
    """One run over a topic's dead letters; `report` is its account at any time.

    `pause` waits for so many seconds, and raises where the run is to end. NotFound
    when there are no dead letters, or no topic to copy them to.
    """

    def __init__(
        self,
        session: Session,
        topic: str,
        options: ReplayOptions,
        pause: Callable[[float], None],
    ) -> None:
        self._session = session
        self._topic = topic
        self._options = options
        self._pause = pause
        (self._source,) = tail.sources(session, topic, dead=True)
        self.target = options.to or topic
        self._count = self._partitions()
        self.report = Report()

    def _partitions(self) -> int:
        if not topics.exists(self._session, self.target):
            error = topics.missing(self._session, self.target)
            if self._options.to is None:
                error.hint = f"mqctl admin create {self.target}, or --to another topic"
            raise error
        return topics.count(self._session, self.target)

    def all(self) -> Report:
        """Replay what is there now, oldest first; ends early at the limit."""
        session, source = self._session, self._source
        self.report.left = session.wire.call("XLEN", source.key(session.keys))
        end = tail.ends(session, [source])
        return self._run(tail.entries(session, [source], "-", end))

    def some(self, entry_ids: Sequence[str]) -> Report:
        """Replay these; one that is not there has failed. NotFound when none is."""
        session, report = self._session, self.report
        key, unique = self._source.key(session.keys), list(dict.fromkeys(entry_ids))
        replies = admin.trips(session, [("XRANGE", key, i, i) for i in unique])
        raws: list[Raw] = []
        for entry_id, reply in zip(unique, replies, strict=True):
            rows = admin.checked(reply, "reading dead letters")
            if rows:
                raws.append(Raw(self._source, entry_id, rows[0][1]))
            else:
                report.failures[entry_id] = "there is no such dead letter"
        if not raws:
            raise NotFound(
                f"topic {self._topic} has no dead letter {', '.join(unique)}",
                hint=f"mqctl dlq list {self._topic}",
                topic=self._topic,
            )
        report.selected, report.left = len(report.failures), len(raws)
        return self._run(raws)

    def _run(self, raws: Iterable[Raw]) -> Report:
        source, report, rate = iter(raws), self.report, self._options.rate
        size = max(1, min(_PAGE, int(rate / 10))) if rate else _PAGE
        clock = self._session.clock
        due = clock.monotonic()
        while report.cause is None and (room := self._room()):
            self._pause(max(0.0, due - clock.monotonic()))
            part = list(islice(source, min(size, room)))
            if not part:
                break
            copies = list(self._copies(part))
            due += len(copies) / rate if rate else 0.0
            if not self._options.dry_run:
                self._write(copies)
            report.left = max(0, report.left - len(part))
        return report

    def _room(self) -> int:
        """Return how many more may be replayed, at most a page."""
        limit = self._options.limit
        made = sum(self.report.targets.values())
        return max(0, min(_PAGE, limit - made)) if limit else _PAGE

    # -- deciding -------------------------------------------------------------

    def _copies(self, raws: Sequence[Raw]) -> Iterator[_Copy]:
        session, report = self._session, self.report
        letters = [dead_letter.decode(self._topic, r.id, r.flat) for r in raws]
        reason = self._options.reason
        if reason is not None:
            letters = [one for one in letters if like(one.death.reason, reason)]
        if not letters:
            return
        key = session.keys.replayed(self._topic)
        told = session.wire.call("HMGET", key, *(one.message.id for one in letters))
        bodies = payloads.load(session, [letter.message for letter in letters])
        for letter, history, body in zip(letters, told, bodies, strict=True):
            report.selected += 1
            report.reasons[letter.death.reason] += 1
            copy = self._decide(letter, history or b"", body)
            if copy is not None:
                report.unaddressed += not letter.death.group
                if self._options.dry_run:
                    self._made(copy)
                yield copy

    def _decide(
        self, letter: DeadLetter, history: bytes, body: Message | None
    ) -> _Copy | None:
        options, report, message = self._options, self.report, letter.message
        if message.replay_count >= options.max_replays:
            report.skipped_limit += 1
            return None
        if Replays.parse(history).count and not options.again:
            report.skipped_replayed += 1
            return None
        if body is None or message.headers.get(h.PAYLOAD_MISSING) == "true":
            report.failures[message.id] = "its body is gone"
            return None
        if letter.death.raw and not body.payload:
            report.failures[message.id] = "its payload could not be read"
            return None
        partition = self._partition(letter)
        headers = dead_letter.replay_headers(letter, all_groups=options.all_groups)
        if message.key is not None and (
            key_partition(message.key, self._count) != partition
        ):
            headers[h.FORCE_PARTITION] = str(partition)
        return _Copy(message.id, body, partition, headers, history)

    def _partition(self, letter: DeadLetter) -> int:
        if letter.partition_known:
            return letter.message.partition % self._count
        return choose(letter.message.key, self._count, None, self._session.random)

    # -- writing --------------------------------------------------------------

    def _write(self, copies: Sequence[_Copy]) -> None:
        session, wire = self._session, self._session.wire
        refs = [self._store(copy) for copy in copies]
        entries = [self._fields(c, ref) for c, ref in zip(copies, refs, strict=True)]
        if all(session.atomic(self._keys(copy)) for copy in copies):
            replies = wire.batch(
                [
                    scripts.replay_dead(
                        wire,
                        self._keys(copy),
                        copy.id,
                        delete=self._options.delete,
                        history=copy.history,
                        fields=fields,
                    )
                    for copy, fields in zip(copies, entries, strict=True)
                ]
            )
        else:
            replies = self._in_order(copies, entries)
        for copy, reply, ref in zip(copies, replies, refs, strict=True):
            self._absorb(copy, reply)
            if ref is not None and not _is_id(reply):
                self._discard(ref)

    def _keys(self, copy: _Copy) -> tuple[str, str, str]:
        names = self._session.keys
        return (
            names.dlq(self._topic),
            names.partition(self.target, copy.partition),
            names.replayed(self._topic),
        )

    def _store(self, copy: _Copy) -> str | None:
        """Store a large body aside; return its key."""
        body = copy.message.payload
        if not payloads.is_large(body):
            return None
        return payloads.store(self._session, self.target, copy.partition, body)

    def _discard(self, ref: str) -> None:
        keys = self._session.keys
        self._session.wire.batch(
            [
                ("DEL", ref),
                ("SREM", keys.payload_index(self.target), ref),
                ("ZREM", keys.payload_times, ref),
            ]
        )

    def _fields(self, copy: _Copy, ref: str | None) -> list[bytes]:
        message = copy.message
        write: Callable[..., list[bytes]] = (
            native.entry_fields
            if ref is None
            else partial(native.aside_fields, ref=ref)
        )
        return write(
            topic=self.target,
            partition=copy.partition,
            payload=message.payload,
            key=message.key,
            headers=copy.headers,
            timestamp=rfc3339(self._session.clock.now_ms()),
            retry_count=0,
            max_retries=message.max_retries or 0,
        )

    def _in_order(
        self, copies: Sequence[_Copy], entries: Sequence[list[bytes]]
    ) -> list[Reply]:
        """Append, then record, then delete, each confirmed before the next."""
        wire, now = self._session.wire, self._session.clock.now_ms()
        dlq, _, replayed = self._keys(copies[0])
        replies = wire.batch(
            [
                ("XADD", self._keys(copy)[1], "*", *fields)
                for copy, fields in zip(copies, entries, strict=True)
            ]
        )
        pairs = zip(copies, replies, strict=True)
        done = [copy for copy, reply in pairs if _is_id(reply)]
        counts = [Replays.parse(copy.history).count + 1 for copy in done]
        wire.calls(
            [
                ("HSET", replayed, copy.id, f"{count}:{now}")
                for copy, count in zip(done, counts, strict=True)
            ]
        )
        if self._options.delete:
            wire.calls([("XDEL", dlq, copy.id) for copy in done])
            wire.calls([("HDEL", replayed, copy.id) for copy in done])
        return replies

    def _absorb(self, copy: _Copy, reply: Reply) -> None:
        """Count what became of a copy."""
        if isinstance(reply, ServerError):
            self.report.failures[copy.id] = reply.text
            self.report.cause = reply.explained("replaying")
        elif _is_id(reply):
            self._made(copy)
            self.report.replayed += 1
            self.report.deleted += self._options.delete
        else:  # another run was faster
            self.report.skipped_replayed += 1

    def _made(self, copy: _Copy) -> None:
        group = copy.headers.get(h.RETRY_GROUP)
        self.report.targets[self.target, copy.partition, group] += 1
        self.report.ids.append(copy.id)


def _is_id(reply: Reply) -> bool:
    return isinstance(reply, bytes) and reply not in {b"gone", b"changed"}
