"""Handing out to a handler: one message of a partition at a time, results settled."""

from dataclasses import dataclass, field, replace

from mqctl.core import headers as h
from mqctl.core import verdict
from mqctl.core.assignment import Slot
from mqctl.core.errors import HandlerBroken
from mqctl.core.handler import Result
from mqctl.core.message import Death, Delivery
from mqctl.core.options import ConsumerOptions
from mqctl.engine.assigned import Assigned
from mqctl.engine.burial import Burial
from mqctl.engine.credit import Credit
from mqctl.engine.ending import Ending
from mqctl.engine.keeping import Keeper
from mqctl.engine.metering import Metering
from mqctl.engine.mover import Mover
from mqctl.engine.pool import Finished, Pool
from mqctl.engine.roster import Roster
from mqctl.engine.session import Session
from mqctl.engine.settle import Step
from mqctl.store.wire import Command


@dataclass(slots=True)
class Working:
    """Starts handlers and turns their results into what is to be settled.

    `active` is when (monotonic) one last started or ended; `broken` is why none can
    be started at all.
    """

    session: Session
    options: ConsumerOptions
    name: str
    pool: Pool
    roster: Roster
    mover: Mover
    burial: Burial
    credit: Credit
    keeper: Keeper
    metering: Metering
    ending: Ending
    active: float
    broken: HandlerBroken | None = None
    _running: dict[Slot, Delivery] = field(default_factory=dict)

    # -- starting -------------------------------------------------------------

    def hand_out(self) -> bool:
        """Start handlers where they are free, the longest unserved partition first."""
        starting: list[tuple[Assigned, Delivery]] = []
        for part in sorted(self.roster.parts.values(), key=lambda p: p.touched):
            if len(starting) >= self.pool.free:
                break
            waits = not part.queue or part.busy is not None or bool(part.shed_to)
            waits = waits or part.waits(self.session.clock.monotonic())
            if not waits and self.roster.sure(part):
                starting.append((part, part.queue.popleft()))
        if not starting:
            return False
        self._mark(starting)
        for part, delivery in starting:
            part.busy = self._running[part.slot] = delivery
            part.touched = self.active = self.session.clock.monotonic()
            self.credit.summary.received += 1
            self.metering.consumed(part.slot)
            self.pool.start(part.slot, delivery)
        if self.credit.used_up:
            self.ending.ask()
        return True

    def _mark(self, starting: list[tuple[Assigned, Delivery]]) -> None:
        """Note in Redis that handling starts: count - 1 = starts that never ended."""
        self.session.wire.calls(
            [
                (*self._claim(part, d), "RETRYCOUNT", d.deliveries + 1, "JUSTID")
                for part, d in starting
            ]
        )

    def _claim(self, part: Assigned, delivery: Delivery) -> Command:
        group = self.options.group
        return ("XCLAIM", part.stream, group, self.name, 0, delivery.message.id)

    # -- results --------------------------------------------------------------

    def absorb(self) -> bool:
        """Take in results; return whether there were any.

        A partition that was lost and came back while a handler still runs for it goes
        on waiting for that handler.
        """
        for slot, delivery in self._running.items():
            part = self.roster.parts.get(slot)
            if part is not None and part.busy is None:
                part.busy = delivery
        finished = self.pool.finished()
        for answer in finished:
            self._conclude(answer)
        self._freshen()
        return bool(finished)

    def _conclude(self, answer: Finished) -> None:
        self.active = self.session.clock.monotonic()
        self._running.pop(answer.slot, None)
        self.metering.handled(answer.slot, answer.seconds)
        if answer.broken is not None:
            self.broken = self.broken or answer.broken
            self.ending.ask()
        if answer.result.stop:
            self.ending.ask()
        part = self.roster.parts.get(answer.slot)
        if part is not None and part.busy is answer.delivery:
            part.busy = None
            self._decide(part, answer.delivery, answer.result)

    def _freshen(self) -> None:
        """Keep entries in long work from looking abandoned."""
        now = self.session.clock.monotonic()
        stale = [
            (part, part.busy)
            for part in self.roster.parts.values()
            if part.busy is not None and now >= part.touched + self._freshness
        ]
        for part, _ in stale:
            part.touched = now
        self.session.wire.calls([(*self._claim(p, d), "JUSTID") for p, d in stale])

    @property
    def _freshness(self) -> float:
        return self.options.claim_idle_ms / 3000

    def _decide(self, part: Assigned, delivery: Delivery, result: Result) -> None:
        options = self.options
        decided = verdict.decide(
            result,
            attempt=delivery.attempt,
            limit=delivery.limit,
            base_ms=options.retry_base_ms,
            cap_ms=options.retry_cap_ms,
            schedule=options.backoff,
        )
        match decided:
            case verdict.Ack() if self._is_deferred(delivery):
                return
            case verdict.Ack():
                part.acks.append(delivery.message.id)
            case verdict.Retry():
                self._retry(part, delivery, decided)
            case verdict.Dead():
                part.steps.append(self._bury(part, delivery, decided, result))
            case verdict.Release():
                self.credit.summary.received -= 1
                part.queue.appendleft(delivery)
            case verdict.Defer():
                return

    def _is_deferred(self, delivery: Delivery) -> bool:
        """Tell whether the producer wants it settled by receipt, and that counts."""
        wish = delivery.message.headers.get(h.DEFER_ACK, "")
        return self.options.honor_defer_ack and wish.lower() == "true"

    def _retry(self, part: Assigned, delivery: Delivery, retry: verdict.Retry) -> None:
        match self.options.retry_mode:
            case "requeue":
                part.steps.append(self.mover.step(delivery, retry))
            case "pending":
                self._leave_pending(part, delivery, retry.delay_ms)
            case "in-place":
                self._wait_for(part, delivery, retry.delay_ms)

    def _leave_pending(self, part: Assigned, delivery: Delivery, delay_ms: int) -> None:
        """Leave it pending: it is claimed again when it has been idle long enough."""
        clock = self.session.clock
        due = clock.monotonic() + delay_ms / 1000
        part.ripe_at = min(part.ripe_at or due, due)
        self.credit.summary.retried += 1
        self.metering.retried(part.slot)
        made = delivery.deliveries
        rule = self.options.claim_rule
        enough = rule.threshold(own=True, first=False, deliveries=made + 1) or 0
        idle = max(0, enough - delay_ms)
        claim = self._claim(part, delivery)
        self.session.wire.call(*claim, "IDLE", idle, "JUSTID")

    def _wait_for(self, part: Assigned, delivery: Delivery, delay_ms: int) -> None:
        """Keep the partition waiting for it; the failure is noted before the wait."""
        entry_id = delivery.message.id
        again = replace(
            delivery, deliveries=delivery.deliveries + 1, attempt=delivery.attempt + 1
        )
        part.queue.appendleft(again)
        part.kept = entry_id
        part.wait_until = self.session.clock.monotonic() + delay_ms / 1000
        self.credit.summary.retried += 1
        self.metering.retried(part.slot)
        if not self.keeper.keep(part.slot, entry_id, delivery.attempt, delay_ms):
            self.roster.renew([part])

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
        strangers = part.topic in self.roster.strangers
        return self.burial.step(
            delivery.message, death, strangers=strangers, delivery=delivery
        )

    # -- ending ---------------------------------------------------------------

    def next_timer(self) -> float:
        """Return when (monotonic) an entry in work must be kept fresh."""
        parts = self.roster.parts.values()
        now = self.session.clock.monotonic()
        fresh = [p.touched + self._freshness for p in parts if p.busy is not None]
        due = [p.wait_until for p in parts if p.waits(now)]
        return min([*fresh, *due], default=float("inf"))

    def drain(self) -> None:
        """Tell the handler that no more will come."""
        self.pool.drain()

    def kill(self) -> None:
        """Stop what runs at once; it is given back."""
        self.pool.kill()

    def close(self) -> None:
        """Let the threads end."""
        self.pool.close()
