"""The consumer's trips to the server: settle, take over, read, give back."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from mqctl.core.errors import MqError, NotFound, OutOfMemory, Unreachable, WrongType
from mqctl.core.message import Delivery
from mqctl.core.options import ConsumerOptions, Summary
from mqctl.engine import claims
from mqctl.engine.ack_delete import delete_acked
from mqctl.engine.assigned import Assigned
from mqctl.engine.claims import Claimed
from mqctl.engine.credit import Credit
from mqctl.engine.intake import Intake
from mqctl.engine.keeping import Keeper
from mqctl.engine.metering import Metering
from mqctl.engine.mover import Mover
from mqctl.engine.roster import Roster
from mqctl.engine.session import Session
from mqctl.engine.settle import Settled, Settlement, absorb, prepare
from mqctl.store.wire import Arg, Reply, ServerError

OnDead = Callable[[Delivery | None, bytes, str], None]
"""Told of each dead letter written: what was handed out, its body, the reason."""

_HOLD = 1.0  # seconds between two attempts at a server that takes no writes
_READ_AHEAD = 8 << 20  # bytes that one read should not exceed by much
_UNKNOWN_SIZE = 1 << 16
_OVERHEAD = 256


@dataclass(slots=True)
class Exchange:
    """Moves entries of the partitions held between the server and their queues.

    `page` is how many are read ahead per partition. Nothing is settled without a
    lease that is known to be mine.
    """

    session: Session
    options: ConsumerOptions
    name: str
    roster: Roster
    intake: Intake
    mover: Mover
    credit: Credit
    keeper: Keeper
    metering: Metering
    summary: Summary
    page: int
    note: Callable[[str], None]
    on_dead: OnDead
    held_until: float = 0.0
    _rung: set[str] = field(default_factory=set)
    _size: int = _UNKNOWN_SIZE
    _turn: int = 0

    # -- in -------------------------------------------------------------------

    def fill(self) -> bool:
        """Settle what waits and read more, in one trip; return whether any came.

        Pending entries, own and abandoned ones, come before new ones.
        """
        credit = self.credit.left()
        now = self.session.clock.monotonic()
        took = False
        fresh: list[Assigned] = []
        for part in self.hungry() if credit != 0 else []:
            if part.cursor is None and now >= part.scan_at:
                part.cursor, part.mine = "-", False
            if part.cursor is None:
                if self.options.claim != "only":
                    fresh.append(part)
                continue
            took = self._scan(part, part.cursor, credit) or took
            if credit is not None:
                credit -= len(part.queue)
                if credit <= 0:
                    fresh = []
                    break
        return self._trade(fresh, self._count(fresh, credit)) or took

    def settle(self) -> bool:
        """Settle what waits, read nothing; return whether there was anything."""
        return self._trade([], 0)

    def hungry(self) -> list[Assigned]:
        """Return the partitions of which more may be read."""
        held = self.session.clock.monotonic() < self.held_until
        return [
            part
            for part in self.roster.parts.values()
            if not part.queue and not part.shed_to and not (held and part.steps)
        ]

    def rung(self, streams: Collection[str]) -> None:
        """Hear that the bell has seen entries in these streams."""
        self._rung.update(streams)

    def _scan(self, part: Assigned, cursor: str, credit: int | None) -> bool:
        """Take over one page of pending entries; return whether to go on."""
        started = self.session.clock.monotonic()
        page = claims.take_page(
            self.session,
            part.stream,
            self.options.group,
            self.name,
            cursor=cursor,
            count=self.options.claim_batch,
            limit=credit,
            rule=self.options.claim_rule,
            first=part.mine,
            in_hand=part.in_hand(),
        )
        if cursor == "-":
            part.ripe_at = None
        if page.ripens_ms is not None:
            ripe = started + page.ripens_ms / 1000
            part.ripe_at = min(part.ripe_at or ripe, ripe)
        part.cursor = page.cursor
        if page.cursor is None:
            part.mine = False
            part.next_scan = started + self.options.claim_interval_ms / 1000
        if page.trimmed:
            self.note(
                f"{part.topic}[{part.slot[1]}]: {len(page.trimmed)} pending entries "
                "had been trimmed, their bodies are gone: acknowledged"
            )
        self._enqueue(part, page.claimed)
        return bool(page.claimed) or page.cursor is not None

    def _count(self, fresh: list[Assigned], credit: int | None) -> int:
        """Return COUNT, which is per stream; a small credit is for one stream."""
        if not fresh:
            return 0
        size = min(self.page, max(1, _READ_AHEAD // self._size // len(fresh)))
        if credit is None:
            return size
        if credit < len(fresh):
            self._turn = (self._turn + 1) % len(fresh)
            fresh[:] = [fresh[self._turn]]
        return min(size, credit // len(fresh))

    def _trade(self, fresh: list[Assigned], count: int) -> bool:
        """Send settlements and a group read together; take both answers in."""
        orders = self._settlements()
        commands: list[tuple[Arg, ...]] = []
        sent: list[tuple[Assigned, Settlement]] = []
        for part, settlement in orders:
            order = prepare(self.session, settlement)
            if callable(order):
                self._settled(part, settlement, self._run(part, order))
            else:
                commands.append(order)
                sent.append((part, settlement))
        reads = self._together(fresh)
        commands += [self._read(parts, count) for parts in reads]
        replies = self.session.wire.batch(commands)
        for (part, settlement), reply in zip(sent, replies, strict=False):
            self._settled(part, settlement, self._absorbed(part, reply))
        came = [
            self._taken(parts, reply)
            for parts, reply in zip(reads, replies[len(sent) :], strict=True)
        ]
        return any(came) or bool(orders)

    def _together(self, parts: list[Assigned]) -> list[list[Assigned]]:
        """Return what one read may name: all, or on a cluster each by itself."""
        if not parts or self.session.atomic(part.stream for part in parts):
            return [parts] if parts else []
        return [[part] for part in parts]

    def _read(self, parts: list[Assigned], count: int) -> tuple[Arg, ...]:
        read: list[Arg] = ["XREADGROUP", "GROUP", self.options.group, self.name]
        read += ["COUNT", count, "STREAMS", *(part.stream for part in parts)]
        return (*read, *(">" for _ in parts))

    def _taken(self, fresh: list[Assigned], reply: Reply) -> bool:
        if isinstance(reply, ServerError):
            self.roster.mend(fresh, reply)
            return True
        by_stream = {part.stream.encode(): part for part in fresh}
        stale = {part.stream for part in fresh} & self._rung
        self._rung -= stale
        for stream, entries in reply or ():
            part = by_stream[stream]
            stale.discard(part.stream)
            part.last_id = entries[-1][0].decode()
            self._enqueue(part, [Claimed(i.decode(), 1, flat) for i, flat in entries])
        if stale:
            self.roster.catch_up([part for part in fresh if part.stream in stale])
        return bool(reply)

    def _enqueue(self, part: Assigned, entries: list[Claimed]) -> None:
        strangers = part.topic in self.roster.strangers
        part.queue.extend(self.intake.take(part, entries, strangers=strangers))
        self.summary.skipped = self.intake.skipped
        if part.queue:
            size = len(part.queue[-1].message.payload) + _OVERHEAD
            self._size = max(size, self._size * 9 // 10)

    # -- out ------------------------------------------------------------------

    def _settlements(self) -> list[tuple[Assigned, Settlement]]:
        if self.session.clock.monotonic() < self.held_until:
            return []
        return [
            (part, part.settlement(self.options.group, self.name))
            for part in list(self.roster.parts.values())
            if (part.acks or part.steps) and self.roster.sure(part)
        ]

    def _run(self, part: Assigned, order: Callable[[], Settled]) -> Settled | None:
        try:
            return order()
        except (OutOfMemory, NotFound) as error:
            self._unsettled(part, error)
            return None

    def _absorbed(self, part: Assigned, reply: Reply) -> Settled | None:
        if isinstance(reply, ServerError):
            self._unsettled(part, reply.explained("settling"))
            return None
        return absorb(reply)

    def _unsettled(self, part: Assigned, error: MqError) -> None:
        """Find out what is wrong; what was to be settled is kept."""
        if isinstance(error, OutOfMemory):
            self.hold(error)
        elif isinstance(error, NotFound | WrongType):
            self.roster.mend([part])
        else:
            raise error

    def hold(self, error: OutOfMemory) -> None:
        """Keep what cannot be written; try again in a second."""
        if not self.held_until:
            self.note(f"{error.message}; holding on until it takes writes again")
        self.held_until = self.session.clock.monotonic() + _HOLD

    def _settled(
        self, part: Assigned, settlement: Settlement, answer: Settled | None
    ) -> None:
        if answer is None:
            return
        self.held_until = 0.0
        if answer.lost:
            self.roster.renew([part])
            return
        part.acks = part.acks[len(settlement.acks) :]
        part.steps = part.steps[len(settlement.steps) :]
        self.summary.acked += len(settlement.acks)
        self.metering.acked(part.slot, len(settlement.acks))
        gone = list(settlement.acks)
        for step, result in zip(settlement.steps, answer.results, strict=True):
            if result != "done":
                continue
            gone.append(step.id)
            if step.kind == "dead":
                self.summary.dead += 1
                self.metering.dead(part.slot, step.reason)
                self.on_dead(step.delivery, step.body, step.reason)
            else:
                self.summary.retried += 1
                self.metering.retried(part.slot)
                self.mover.expect(part.topic, step.delay_ms)
        self._delete(part, gone)
        if part.kept is not None and part.kept not in part.in_hand():
            self.keeper.drop(part.slot, part.kept)
            part.kept = None

    def _delete(self, part: Assigned, acked: list[str]) -> None:
        """Remove acknowledged entries where that is the policy.

        What cannot be removed stays, acknowledged.
        """
        options = self.options
        try:
            delete_acked(
                self.session,
                options.ack_delete,
                part.slot,
                options.group,
                acked,
                ackset_ttl_ms=options.ackset_ttl_ms,
            )
        except Unreachable:
            raise
        except MqError as error:
            self.note(f"{error.message}; acknowledged entries stay")

    def give_back(self, parts: list[Assigned]) -> None:
        """Make what was read and not handed out claimable by everybody at once."""
        for part in parts:
            entries = [(d.message.id, d.deliveries) for d in part.queue]
            if entries:
                claims.give_back(
                    self.session, part.stream, self.options.group, self.name, entries
                )
            part.queue.clear()
