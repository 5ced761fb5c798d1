"""A consumer: takes its share of partitions, hands out messages, settles them.

One thread owns the connection and runs `tick` after `tick`: signs of life and leases,
results of handlers, reading, handing out. Only handlers that block have threads.
Per partition everything is serial and in id order; own pending entries and those
taken over come before new ones.
"""

import select
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from mqctl.core import verdict
from mqctl.core.errors import (
    BadUsage,
    HandlerBroken,
    MqError,
    NameInUse,
    NotFound,
    OutOfMemory,
    Unreachable,
)
from mqctl.core.handler import Handler, Result
from mqctl.core.message import Death, Delivery
from mqctl.core.options import ConsumerOptions, Summary
from mqctl.engine import claims
from mqctl.engine.assigned import Assigned
from mqctl.engine.bell import Bell
from mqctl.engine.burial import Burial
from mqctl.engine.claims import Claimed
from mqctl.engine.intake import Intake
from mqctl.engine.mover import Mover
from mqctl.engine.pool import Finished, Pool, Wake
from mqctl.engine.roster import Roster
from mqctl.engine.session import Session
from mqctl.engine.settle import Settled, Settlement, Step, absorb, prepare
from mqctl.engine.standing import Standing, standing
from mqctl.store.wire import Arg, Reply, ServerError

_PRINT_BATCH = 500
_MANUAL_BOUND = 1000
_GIVE_UP_SHARE = 1 / 3  # of a lease that must be left for anything to be written
_FULL_PAUSE = 1.0


class Sink(Protocol):
    """Where messages go that no handler takes: it writes a batch and flushes it."""

    def write(self, deliveries: Sequence[Delivery], alive: Callable[[], None]) -> None:
        """Write all; call `alive` at least every second while blocked.

        Returns only when everything is out. Raises OutputFailed or BrokenPipeError
        when it cannot be.
        """


class _HardStop(Exception):
    """Stop at once; whatever is in hand stays pending."""


@dataclass(slots=True)
class _Stop:
    """What has been asked from outside, by signal handlers or other threads."""

    drain: bool = False
    hard: bool = False


class Consumer:
    """One member of a group.

    Give it a `handler` (runs in threads, settles by its result) or a `sink` (prints).
    `note` gets lines for people. `run` returns the summary; after it, `error` holds
    what ended it too early and `joined` whether it got as far as the group.
    """

    def __init__(
        self,
        session: Session,
        options: ConsumerOptions,
        *,
        handler: Handler | None = None,
        sink: Sink | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        if (handler is None) == (sink is None):
            raise BadUsage("a consumer needs either a handler or a sink")
        self._session = session
        self.options = options
        self._note = note
        self._clock = session.clock
        self.name = options.consumer or (
            f"{options.consumer_prefix}{session.random.getrandbits(32):08x}"
        )
        self.summary = Summary()
        self.error: MqError | BrokenPipeError | None = None
        self.joined = False
        self._stop = _Stop()
        self._wake = Wake()
        self._bell = Bell(session)
        self._sink = sink
        self._pool = (
            Pool(handler, options.workers, self._wake, self._clock.monotonic)
            if handler is not None
            else None
        )
        self._burial = Burial(session, options.java_codec)
        self._intake = Intake(
            session, options.group, self.name, options.retry_max, self._burial
        )
        self._roster = Roster(session, options, self.name, note)
        self._mover = Mover(session, options, note)
        self._parts = self._roster.parts
        self._began = self._clock.monotonic()
        self._active = self._began
        self._draining_since: float | None = None
        self._full_until = 0.0
        self._turn = 0
        self._manual_pending = 0
        self._manual_counted = 0.0
        self._left: Standing | None = None

    # -- from outside ---------------------------------------------------------

    def stop(self, *, hard: bool = False) -> None:
        """Drain and end; `hard` ends at once and leaves messages pending.

        Safe from signal handlers and other threads.
        """
        self._stop.drain = True
        self._stop.hard = self._stop.hard or hard
        self._wake.ring()

    @property
    def stopping(self) -> bool:
        """Tell whether it has been asked to stop."""
        return self._stop.drain

    # -- the loop -------------------------------------------------------------

    def run(self) -> Summary:
        """Consume until stopped, a limit is reached or there is nothing left.

        Raises NotFound, NameInUse, Unreachable and the like when it cannot start;
        later the server may come and go.
        """
        try:
            self._roster.join()
            self.joined = True
            self._loop()
        except _HardStop:
            self._kill()
        except (MqError, BrokenPipeError) as error:
            self.error = error
        finally:
            self._finish()
        if isinstance(self.error, MqError) and not isinstance(self.error, Unreachable):
            raise self.error
        if isinstance(self.error, Unreachable) and not self.stopping:
            raise self.error
        return self.summary

    def _loop(self) -> None:
        while not self._over():
            try:
                if not self.tick():
                    self._rest()
            except Unreachable as error:
                self._reconnect(error)

    def tick(self) -> bool:
        """Do one round; return whether anything happened."""
        self._obey()
        self._roster.pulse(self._clock.monotonic())
        moved = self._mover.tick(self._roster.topics)
        finished = self._absorb()
        read = self._fill()
        worked = self._work()
        self._shed()
        return bool(moved or finished or read or worked)

    def _obey(self) -> None:
        if self._stop.hard:
            raise _HardStop
        now = self._clock.monotonic()
        limit = self.options.max_time_ms
        if limit and now - self._began >= limit / 1000:
            self._stop.drain = True
        if self._stop.drain and self._draining_since is None:
            self._draining_since = now
            if self._pool is not None:
                self._pool.drain()

    def _over(self) -> bool:
        if self._draining_since is None:
            return False
        now = self._clock.monotonic()
        late = now - self._draining_since > self.options.drain_timeout_ms / 1000
        if late:
            self._note("drain timeout: what is still in work stays pending")
            raise _HardStop
        return all(part.idle for part in self._parts.values()) or not self._parts

    # -- reading --------------------------------------------------------------

    def _credit(self) -> int | None:
        """Return how many messages may still be fetched; None = no bound."""
        options = self.options
        bounds: list[int] = []
        queued = sum(len(part.queue) for part in self._parts.values())
        busy = sum(part.busy is not None for part in self._parts.values())
        if options.max_messages:
            bounds.append(options.max_messages - self.summary.received - queued)
        if options.ack == "manual":
            bound = options.max_in_flight or _MANUAL_BOUND
            bounds.append(bound - queued - self._unsettled_receipts())
        elif options.max_in_flight:
            bounds.append(options.max_in_flight - queued - busy)
        return max(0, min(bounds)) if bounds else None

    def _unsettled_receipts(self) -> int:
        """Return how many handed-out entries still wait for their receipts."""
        now = self._clock.monotonic()
        bound = self.options.max_in_flight or _MANUAL_BOUND
        if self._manual_pending >= bound and now - self._manual_counted > 0.05:  # noqa: PLR2004
            self._manual_counted = now
            self._manual_pending = self._own_pending()
        return self._manual_pending

    def _own_pending(self) -> int:
        replies = self._session.wire.batch(
            [
                ("XPENDING", part.stream, self.options.group)
                for part in self._parts.values()
            ]
        )
        me = self.name.encode()
        total = 0
        for reply in replies:
            if isinstance(reply, ServerError) or not reply[3]:
                continue
            total += sum(int(count) for owner, count in reply[3] if owner == me)
        return total

    def _fill(self) -> bool:
        """Settle what waits and read more, in one trip; return whether any came."""
        if self._stop.drain:
            return self._exchange([], 0)
        credit = self._credit()
        now = self._clock.monotonic()
        hungry = [p for p in self._parts.values() if not p.queue and not p.shed_to]
        if credit == 0:
            hungry = []
        took = False
        fresh: list[Assigned] = []
        for part in hungry:
            if part.cursor is None and self._scan_due(part, now):
                part.cursor, part.mine = "-", False
            if part.cursor is None:
                fresh.append(part)
            elif self._scan(part, credit):
                took = True
                if credit is not None:
                    credit = max(0, credit - len(part.queue))
        if credit == 0:
            fresh = []
        return self._exchange(fresh, self._count(fresh, credit)) or took

    def _scan_due(self, part: Assigned, now: float) -> bool:
        return now >= part.next_scan or (
            part.ripe_at is not None and now >= part.ripe_at
        )

    def _scan(self, part: Assigned, credit: int | None) -> bool:
        """Take over one page of pending entries; return whether any came."""
        if part.cursor is None:
            return False
        started = self._clock.monotonic()
        size = self.options.claim_batch
        page = claims.take_page(
            self._session,
            part.stream,
            self.options.group,
            self.name,
            cursor=part.cursor,
            count=size if credit is None else max(1, min(size, credit)),
            idle_ms=self.options.claim_idle_ms,
            mine=part.mine,
            in_hand=part.in_hand(),
        )
        if part.cursor == "-":
            part.ripe_at = None
        if page.ripens_ms is not None:
            ripe = started + page.ripens_ms / 1000
            part.ripe_at = min(part.ripe_at or ripe, ripe)
        part.cursor = page.cursor
        if page.cursor is None:
            part.mine = False
            part.next_scan = started + self.options.claim_interval_ms / 1000
        if page.trimmed:
            self._note(
                f"{part.topic}[{part.slot[1]}]: {len(page.trimmed)} pending entries "
                "had been trimmed, their bodies are gone: acknowledged"
            )
        self._enqueue(part, page.claimed)
        return bool(page.claimed) or page.cursor is not None

    def _count(self, fresh: list[Assigned], credit: int | None) -> int:
        size = self.options.batch if self._pool is not None else _PRINT_BATCH
        if credit is None:
            return size
        if fresh and credit >= len(fresh):
            return min(size, credit // len(fresh))
        if fresh:
            self._turn = (self._turn + 1) % len(fresh)
            fresh[:] = [fresh[self._turn]]
        return max(1, credit)

    def _exchange(self, fresh: list[Assigned], count: int) -> bool:
        """Send settlements and a group read together; take both answers in."""
        settling = [
            (part, part.settlement(self.options.group, self.name))
            for part in self._parts.values()
            if part.acks or part.steps
        ]
        if self._clock.monotonic() < self._full_until:
            settling = []
        elif settling:
            settling = [(p, s) for p, s in settling if self._sure(p)]
        direct: list[tuple[Assigned, Settlement]] = []
        commands: list[tuple[Arg, ...]] = []
        for part, settlement in settling:
            order = prepare(self._session, settlement)
            if callable(order):
                self._settled(part, settlement, self._try(order))
            else:
                commands.append(order)
                direct.append((part, settlement))
        reads = self._together(fresh)
        commands += [self._read(parts, count) for parts in reads]
        if not commands:
            return bool(settling)
        replies = self._session.wire.batch(commands)
        for (part, settlement), reply in zip(direct, replies, strict=False):
            self._settled(part, settlement, self._absorbed(reply))
        taken = [
            self._taken(parts, reply)
            for parts, reply in zip(reads, replies[len(direct) :], strict=True)
        ]
        return any(taken) or bool(settling)

    def _together(self, parts: list[Assigned]) -> list[list[Assigned]]:
        """Return what one read may name: all, or on a cluster each by itself."""
        if not parts or self._session.atomic(part.stream for part in parts):
            return [parts] if parts else []
        return [[part] for part in parts]

    def _read(self, parts: list[Assigned], count: int) -> tuple[Arg, ...]:
        read: list[Arg] = ["XREADGROUP", "GROUP", self.options.group, self.name]
        read += ["COUNT", count, "STREAMS", *(part.stream for part in parts)]
        return (*read, *(">" for _ in parts))

    def _taken(self, fresh: list[Assigned], reply: Reply) -> bool:
        if reply is None:
            return False
        if isinstance(reply, ServerError):
            self._roster.mend(fresh, reply)
            return True
        by_stream = {part.stream.encode(): part for part in fresh}
        for stream, entries in reply:
            part = by_stream[stream]
            part.last_id = entries[-1][0].decode()
            self._enqueue(part, [Claimed(i.decode(), 1, flat) for i, flat in entries])
        return True

    def _enqueue(self, part: Assigned, entries: list[Claimed]) -> None:
        strangers = part.topic in self._roster.strangers
        part.queue.extend(self._intake.take(part, entries, strangers=strangers))
        self.summary.skipped = self._intake.skipped

    # -- handing out ----------------------------------------------------------

    def _sure(self, part: Assigned) -> bool:
        """Make sure the lease is still mine before anything is written."""
        ttl = self.options.lease_ttl_ms / 1000
        if self._clock.monotonic() - part.held_at < ttl * (1 - _GIVE_UP_SHARE):
            return True
        return self._roster.renew([part])

    def _work(self) -> bool:
        if self._stop.drain:
            return False
        return self._print() if self._pool is None else self._start_handlers()

    def _print(self) -> bool:
        ready = [p for p in list(self._parts.values()) if p.queue and self._sure(p)]
        batch = [delivery for part in ready for delivery in part.queue]
        if not batch or self._sink is None:
            return False
        self._active = self._clock.monotonic()
        self._sink.write(batch, self._alive)
        self.summary.received += len(batch)
        for part in ready:
            if self.options.ack == "auto":
                part.acks.extend(delivery.message.id for delivery in part.queue)
            part.queue.clear()
        if self.options.ack != "auto":
            self._manual_pending += len(batch)
        self._active = self._clock.monotonic()
        self._reached_limit()
        return True

    def _alive(self) -> None:
        """Keep leases while the reader of our output is slow."""
        self._obey()
        if self._draining_since is not None:
            now = self._clock.monotonic()
            late = now - self._draining_since > self.options.drain_timeout_ms / 1000
            if late:
                raise _HardStop
        self._roster.keep(self._clock.monotonic())

    def _reached_limit(self) -> None:
        limit = self.options.max_messages
        if limit and self.summary.received >= limit:
            self._stop.drain = True

    def _start_handlers(self) -> bool:
        if self._pool is None:
            return False
        starting: list[tuple[Assigned, Delivery]] = []
        for part in list(self._parts.values()):
            if self._pool.free <= len(starting):
                break
            waits = not part.queue or part.busy is not None or part.shed_to
            if waits or not self._sure(part):
                continue
            starting.append((part, part.queue.popleft()))
        if not starting:
            return False
        self._mark(starting)
        for part, delivery in starting:
            part.busy = delivery
            part.refreshed = self._clock.monotonic()
            self.summary.received += 1
            self._pool.start(part.slot, delivery)
        self._active = self._clock.monotonic()
        self._reached_limit()
        return True

    def _mark(self, starting: list[tuple[Assigned, Delivery]]) -> None:
        """Note in Redis that handling starts: count - 1 = starts that never ended."""
        group = self.options.group
        self._session.wire.calls(
            [
                (
                    *("XCLAIM", part.stream, group, self.name, 0),
                    *(d.message.id, "RETRYCOUNT", d.deliveries + 1, "JUSTID"),
                )
                for part, d in starting
            ]
        )

    def _freshen(self) -> None:
        """Keep entries in long work from looking abandoned."""
        now, third = self._clock.monotonic(), self.options.claim_idle_ms / 3000
        stale = [
            (part, part.busy)
            for part in self._parts.values()
            if part.busy is not None and now - part.refreshed > third
        ]
        for part, _ in stale:
            part.refreshed = now
        self._session.wire.calls(
            [
                (
                    *("XCLAIM", part.stream, self.options.group, self.name, 0),
                    *(delivery.message.id, "JUSTID"),
                )
                for part, delivery in stale
            ]
        )

    # -- results --------------------------------------------------------------

    def _absorb(self) -> bool:
        if self._pool is None:
            return False
        finished = self._pool.finished()
        for answer in finished:
            self._conclude(answer)
        self._freshen()
        return bool(finished)

    def _conclude(self, answer: Finished) -> None:
        part = self._parts.get(answer.slot)
        self._active = self._clock.monotonic()
        if answer.broken is not None:
            self._break(answer.broken)
        if part is None or part.busy is not answer.delivery:
            return  # the lease was lost meanwhile: somebody else has it now
        part.busy = None
        self._decide(part, answer.delivery, answer.result)
        if answer.result.stop:
            self._stop.drain = True

    def _break(self, error: HandlerBroken) -> None:
        if self.error is None:
            self.error = error
        self._stop.drain = True

    def _decide(self, part: Assigned, delivery: Delivery, result: Result) -> None:
        options = self.options
        decided = verdict.decide(
            result,
            attempt=delivery.attempt,
            limit=delivery.limit,
            base_ms=options.retry_base_ms,
            cap_ms=options.retry_cap_ms,
        )
        match decided:
            case verdict.Ack():
                part.acks.append(delivery.message.id)
            case verdict.Retry():
                part.steps.append(self._mover.step(delivery, decided))
            case verdict.Dead():
                part.steps.append(self._bury(part, delivery, decided, result))
            case verdict.Release():
                self.summary.received -= 1
                part.queue.appendleft(delivery)
            case verdict.Defer():
                return

    def _bury(
        self,
        part: Assigned,
        delivery: Delivery,
        decided: verdict.Dead,
        result: Result,
    ) -> Step:
        death = Death(
            decided.reason,
            decided.detail,
            group=self.options.group,
            consumer=self.name,
            attempts=delivery.attempt,
            exit_code=result.exit_code,
            signal=result.signal,
            stderr=result.stderr,
        )
        strangers = part.topic in self._roster.strangers
        return self._burial.step(delivery.message, death, strangers=strangers)

    def _try(self, order: Callable[[], Settled]) -> Settled | None:
        try:
            return order()
        except OutOfMemory as error:
            self._full(error)
            return None
        except NotFound:
            return Settled(lost=True, results=[])

    def _absorbed(self, reply: Reply) -> Settled | None:
        if not isinstance(reply, ServerError):
            return absorb(reply)
        error = reply.explained("settling")
        if isinstance(error, OutOfMemory):
            self._full(error)
            return None
        if isinstance(error, NotFound):
            return Settled(lost=True, results=[])
        raise error

    def _full(self, error: OutOfMemory) -> None:
        """Hold on to what cannot be written; try again in a second."""
        if not self._full_until:
            self._note(f"{error.message}; holding on until it takes writes again")
        self._full_until = self._clock.monotonic() + _FULL_PAUSE

    def _settled(
        self, part: Assigned, settlement: Settlement, answer: Settled | None
    ) -> None:
        if answer is None:
            return
        self._full_until = 0.0
        if answer.lost:
            self._roster.drop(part, "its lease is somebody else's now")
            self.summary.duplicates_possible += len(part.in_hand())
            return
        part.acks = part.acks[len(settlement.acks) :]
        part.steps = part.steps[len(settlement.steps) :]
        self.summary.acked += len(settlement.acks)
        for step, result in zip(settlement.steps, answer.results, strict=True):
            if result != "done":
                continue
            if step.kind == "dead":
                self.summary.dead += 1
            else:
                self.summary.retried += 1
                self._mover.expect(part.topic, step.delay_ms)

    # -- letting go -----------------------------------------------------------

    def _shed(self) -> None:
        """Hand over partitions that are due to somebody else and idle."""
        drain = self._stop.drain
        leaving = [p for p in self._parts.values() if (p.shed_to or drain) and p.idle]
        if not leaving:
            return
        self._give_back(leaving)
        self._roster.release(leaving, stopping=drain)

    def _give_back(self, parts: list[Assigned]) -> None:
        for part in parts:
            entries = [(d.message.id, d.deliveries) for d in part.queue]
            if entries:
                claims.give_back(
                    self._session, part.stream, self.options.group, self.name, entries
                )
            part.queue.clear()

    def _kill(self) -> None:
        if self._pool is not None:
            self._pool.kill()

    def _finish(self) -> None:
        """Leave the group; whatever the server still owes is left to time."""
        try:
            if isinstance(self.error, (BrokenPipeError, MqError)):
                self._unsaid()
            if not self._session.wire.closed:
                self._roster.leave(list(self._parts.values()))
                self._account()
        except (MqError, _HardStop) as error:
            if self.error is None and isinstance(error, MqError):
                self.error = error
        finally:
            if self._pool is not None:
                self._pool.close()
            self._bell.drop()
            self._wake.close()
        elapsed = self._clock.monotonic() - self._began
        self.summary.duration_ms = int(elapsed * 1000)

    def _unsaid(self) -> None:
        """Give back what was read and could not be written out."""
        if self._session.wire.closed:
            return
        self._stop.drain = True
        idle = [p for p in self._parts.values() if p.busy is None]
        self._exchange([], 0)
        self._give_back([p for p in idle if p.slot in self._parts])

    def _account(self) -> None:
        if self._left is None and not self.options.exit_when_empty:
            return
        left = self._standing()
        self.summary.left_in_work = left.pending
        self.summary.left_delayed = left.delayed
        self.summary.next_delayed_ms = left.next_delayed_ms

    # -- waiting --------------------------------------------------------------

    def _standing(self) -> Standing:
        return standing(
            self._session,
            self.options.group,
            self._roster.selected(),
            self.options.claim_idle_ms,
        )

    def _rest(self) -> None:
        """Wait for something to happen: an entry, a result, a signal, a timer."""
        now = self._clock.monotonic()
        if self._idle_too_long(now) or self._nothing_left():
            self._stop.drain = True
            return
        watched = {
            part.stream: part.last_id
            for part in self._parts.values()
            if not part.queue and part.cursor is None and not part.shed_to
        }
        if self._stop.drain or self._credit() == 0:
            watched = {}
        self._bell.arm(watched, max(self.options.poll_ms, 1))
        timeout = max(0.0, self._next_timer(now) - now)
        waiting = [self._wake.fileno(), *self._bell.filenos()]
        ready, _, _ = select.select(waiting, [], [], timeout)
        if self._wake.fileno() in ready:
            self._wake.clear()
        self._bell.heard(ready)

    def _next_timer(self, now: float) -> float:
        timers = [self._roster.next_timer, self._mover.next_timer, now + 1.0]
        for part in self._parts.values():
            timers.append(part.next_scan)
            if part.ripe_at is not None:
                timers.append(part.ripe_at)
        if self.options.idle_exit_ms:
            timers.append(self._active + self.options.idle_exit_ms / 1000)
        if self.options.max_time_ms:
            timers.append(self._began + self.options.max_time_ms / 1000)
        if self._full_until:
            timers.append(self._full_until)
        if self.options.exit_when_empty or self._credit() == 0:
            timers.append(now + 0.1)
        return min(timers)

    def _idle_too_long(self, now: float) -> bool:
        if not self.options.idle_exit_ms:
            return False
        busy = any(not p.idle or p.queue for p in self._parts.values())
        if busy:
            self._active = now
        return now - self._active >= self.options.idle_exit_ms / 1000

    def _nothing_left(self) -> bool:
        if not self.options.exit_when_empty or self._stop.drain:
            return False
        if any(not p.idle or p.queue or p.cursor for p in self._parts.values()):
            return False
        self._left = self._standing()
        return not self._left.startable

    def _reconnect(self, error: Unreachable) -> None:
        """Come back by ourselves, at a bounded rate, with nothing assumed."""
        self._note(f"{error.message}; reconnecting")
        self._bell.drop()
        pause = 0.05
        while True:
            self._obey()
            if self._draining_since is not None:
                since = self._clock.monotonic() - self._draining_since
                if since > self.options.drain_timeout_ms / 1000:
                    raise error
            try:
                self._session.reopen()
                self._roster.recover()
            except Unreachable:
                select.select([self._wake.fileno()], [], [], pause)
                pause = min(2.0, pause * 2)
                continue
            self._note("connected again")
            return


def with_name(options: ConsumerOptions, name: str) -> ConsumerOptions:
    """Return the options for a consumer of that name."""
    return replace(options, consumer=name)


__all__ = ["Consumer", "NameInUse", "Sink", "with_name"]
