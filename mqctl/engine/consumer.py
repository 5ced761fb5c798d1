"""A consumer: takes its share of partitions, hands out messages, settles them.

One thread owns the connection and runs `tick` after `tick`: signs of life and leases,
results of handlers, reading, handing out. Only handlers that block have threads.
Per partition everything is serial and in id order; own pending entries and those
taken over come before new ones.
"""

import select
from collections.abc import Callable
from threading import Timer

from mqctl.core.errors import (
    BadUsage,
    HandlerBroken,
    MqError,
    NameInUse,
    NotFound,
    OutOfMemory,
    Unreachable,
)
from mqctl.core.handler import Handler
from mqctl.core.meter import Meter
from mqctl.core.options import ConsumerOptions, Summary
from mqctl.core.selection import Selection
from mqctl.engine.bell import Bell
from mqctl.engine.burial import Burial
from mqctl.engine.credit import Credit
from mqctl.engine.ending import Ending, HardStop
from mqctl.engine.exchange import Exchange, OnDead
from mqctl.engine.groups import GroupDeleted
from mqctl.engine.intake import Intake
from mqctl.engine.keeping import Keeper
from mqctl.engine.life import Life
from mqctl.engine.metering import Metering
from mqctl.engine.mover import Mover
from mqctl.engine.pool import Pool, Wake
from mqctl.engine.printing import Printing, Sink, Stuck
from mqctl.engine.roster import Roster
from mqctl.engine.session import Session
from mqctl.engine.standing import Standing, standing
from mqctl.engine.trimmer import Trimmer
from mqctl.engine.working import Working

_PRINT_BATCH = 500
_LOOK_AGAIN = 0.1  # seconds between two looks at what only others can change
_LONGEST_REST = 1.0
_KILL_GRACE = 2.0  # seconds for killed handlers to be given back
_HARD_GRACE = 1.0  # seconds that a hard stop leaves a server that does not answer


class Consumer:
    """One member of a group.

    Give it a `handler` (runs in threads, settles by its result) or a `sink` (prints).
    `note` gets lines for people, `on_ready` is called when the first partition is
    held, `meter` counts. `run` returns the summary; after it, `error` holds
    what ended it too early, `joined` whether it got as far as the group, and
    `drained` whether all that was in hand was finished or given back in time.
    """

    def __init__(
        self,
        session: Session,
        options: ConsumerOptions,
        *,
        handler: Handler | None = None,
        sink: Sink | None = None,
        note: Callable[[str], None] = lambda _: None,
        on_ready: Callable[[], None] = lambda: None,
        meter: Meter | None = None,
        on_dead: OnDead | None = None,
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
        self.drained = True
        self._ending = Ending(session.clock, options)
        self._wake = Wake()
        self._bell = Bell(session, options.poll_ms)
        self._roster = Roster(session, options, self.name, note)
        self._parts = self._roster.parts
        self._mover = Mover(session, options, note)
        self.meter = meter or Meter()
        self._metering = Metering(self.meter, options.group, self.name)
        self._life = Life(
            options, self.summary, self._roster, self._metering, note, on_ready
        )
        self._keeper = Keeper(session, options.group, self.name)
        self._trimmer = Trimmer(session, options.retention, note)
        self._burial = Burial(session, options.java_codec)
        self._credit = Credit(session, options, self.name, self._parts, self.summary)
        self._outlet = self._make_outlet(handler, sink)
        self._exchange = Exchange(
            session,
            options,
            self.name,
            self._roster,
            Intake(
                session,
                options.group,
                self.name,
                options.retry_max,
                self._burial,
                options.where,
            ),
            self._mover,
            self._credit,
            self._keeper,
            self._metering,
            self.summary,
            _PRINT_BATCH if handler is None else options.batch,
            note,
            on_dead or (lambda *_: None),
        )
        self._reselected: Selection | None = None
        self._killed_at: float | None = None
        self._left: Standing | None = None

    def _make_outlet(
        self, handler: Handler | None, sink: Sink | None
    ) -> Printing | Working:
        options, roster = self.options, self._roster
        credit, ending, active = self._credit, self._ending, self._ending.began
        if sink is not None:
            return Printing(
                options, sink, roster, credit, self._metering, ending, active
            )
        assert handler is not None  # noqa: S101 - checked by the caller
        return Working(
            self._session,
            options,
            self.name,
            Pool(handler, options.workers, self._wake, self._clock.monotonic),
            roster,
            self._mover,
            self._burial,
            credit,
            self._keeper,
            self._metering,
            ending,
            active,
        )

    # -- from outside ---------------------------------------------------------

    def stop(self, *, hard: bool = False, drain_ms: int | None = None) -> None:
        """Drain and end; `hard` ends at once and leaves messages pending.

        `drain_ms` bounds the wait for handlers instead of the option. Safe from
        signal handlers and other threads.
        """
        if hard and not self._ending.hard:
            cut = Timer(_HARD_GRACE, self._session.wire.abort)
            cut.daemon = True
            cut.start()
        self._ending.ask(hard=hard, drain_ms=drain_ms)
        self._wake.ring()

    def reassign(self, selection: Selection) -> None:
        """Take other partitions of the same topics from now on; from any thread."""
        self._reselected = selection
        self._wake.ring()

    def close(self) -> None:
        """Close the connection; after `run`."""
        self._session.close()

    def pause(self) -> None:
        """Fetch and start nothing more until `resume`; leases are kept."""
        self._life.paused = True
        self._wake.ring()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._life.paused = False
        self._wake.ring()

    @property
    def paused(self) -> bool:
        """Tell whether it pauses."""
        return self._life.paused

    def tell(self) -> None:
        """Have a line of statistics noted soon."""
        self._life.asked = True
        self._wake.ring()

    @property
    def in_flight(self) -> int:
        """Return how many handlers run."""
        return self._life.in_flight

    @property
    def stopping(self) -> bool:
        """Tell whether it has been asked to stop."""
        return self._ending.drain

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
        except HardStop:
            self.drained = False
            self._outlet.kill()
        except Stuck:
            self.drained = False
            self._note(
                "drain timeout: the reader does not read; the rest is given back"
            )
        except (MqError, BrokenPipeError) as error:
            self.error = error
        finally:
            self._finish()
        if isinstance(self._outlet, Working) and self._outlet.broken is not None:
            self.error = self.error or self._outlet.broken
        lost = isinstance(self.error, Unreachable) and self.stopping
        if isinstance(self.error, MqError) and not lost:
            raise self.error
        return self.summary

    def _loop(self) -> None:
        while not self._over():
            try:
                if not self.tick():
                    self._rest()
            except Unreachable as error:
                self._reconnect(error)
            except OutOfMemory as error:
                self._exchange.hold(error)
                self._pause(_LOOK_AGAIN)
            except GroupDeleted:
                raise
            except NotFound:
                self._roster.mend(list(self._parts.values()))

    def tick(self) -> bool:
        """Do one round; return whether anything happened."""
        self._ending.obey()
        if self._reselected is not None:
            selection, self._reselected = self._reselected, None
            self._roster.reselect(selection)
        draining = self._ending.drain
        if draining:
            self._outlet.drain()
            self._roster.retire()
        self._roster.pulse(self._clock.monotonic())
        self._life.tick(self._clock.monotonic())
        still = draining or self._life.paused
        moved = 0 if still else self._mover.tick(self._roster.topics)
        if not draining:
            self._trimmer.tick(self._clock.monotonic(), list(self._parts))
        finished = self._outlet.absorb()
        read = self._exchange.settle() if still else self._exchange.fill()
        worked = not (still or self._ending.drain) and self._outlet.hand_out()
        self._let_go()
        return bool(moved or finished or read or worked)

    def _over(self) -> bool:
        if not self._ending.drain:
            return False
        if self._ending.late:
            self._give_up()
        return not self._parts and self._roster.retired

    def _give_up(self) -> None:
        """Stop what still runs so that it can be given back; end when it does not."""
        now = self._clock.monotonic()
        if self._killed_at is None:
            self._killed_at = now
            self.drained = False
            self._note("drain timeout: what is still in work is stopped")
            self._outlet.kill()
        if now - self._killed_at > _KILL_GRACE:
            raise HardStop

    def _let_go(self) -> None:
        """Hand over partitions that are due to somebody else and idle."""
        drain = self._ending.drain and self._roster.retired
        leaving = [p for p in self._parts.values() if (p.shed_to or drain) and p.idle]
        if leaving:
            self._exchange.give_back(leaving)
            self._roster.release(leaving)

    # -- ending ---------------------------------------------------------------

    def _finish(self) -> None:
        """Leave the group; whatever the server still owes is left to time."""
        try:
            if not self._session.wire.closed:
                if not self._ending.hard:
                    self._give_back()
                self._roster.leave()
                self._account()
        except MqError as error:
            self.error = self.error or error
            self.drained = self.drained and not self._in_hand
        finally:
            self._outlet.close()
            self._bell.drop()
            self._wake.close()
        self.summary.duplicates_possible = self._roster.repeated
        elapsed = self._clock.monotonic() - self._ending.began
        self.summary.duration_ms = int(elapsed * 1000)

    def _give_back(self) -> None:
        """Settle what is done, give back what was read and not handed out."""
        if self._parts:
            self._exchange.settle()
            self._exchange.give_back(list(self._parts.values()))

    def _account(self) -> None:
        if self._left is None and not self.options.exit_when_empty:
            return
        left = self._standing()
        self.summary.left_in_work = left.pending
        self.summary.left_delayed = left.delayed
        self.summary.next_delayed_ms = left.next_delayed_ms

    def _standing(self) -> Standing:
        return standing(
            self._session,
            self.options.group,
            self._roster.selected(),
            self.options.claim_idle_ms,
        )

    # -- waiting --------------------------------------------------------------

    def _rest(self) -> None:
        """Wait for something to happen: an entry, a result, a signal, a timer."""
        if self._idle_too_long() or self._nothing_left():
            self._ending.ask()
            return
        still = self._ending.drain or self._life.paused
        hungry = [] if still else self._exchange.hungry()
        if self._credit.left() == 0:
            hungry = []
        listening = [part for part in hungry if part.cursor is None]
        self._bell.arm({part.stream: part.last_id for part in listening})
        timers = [part.scan_at for part in listening]
        if hungry and len(listening) < len(hungry):
            timers.append(0.0)
        self._pause(min([*timers, *self._timers()]) - self._clock.monotonic())

    def _timers(self) -> list[float]:
        """Return when (monotonic) something is due by itself."""
        now = self._clock.monotonic()
        timers = [
            now + _LONGEST_REST,
            self._roster.next_timer,
            self._outlet.next_timer(),
            self._ending.deadline,
            self._ending.last_moment,
            self._life.next_timer,
        ]
        if not (self._ending.drain or self._life.paused):
            timers.append(self._mover.next_timer)
        if not self._ending.drain:
            timers.append(self._trimmer.next_timer)
        if self.options.idle_exit_ms:
            timers.append(self._outlet.active + self.options.idle_exit_ms / 1000)
        if self._exchange.held_until > now:
            timers.append(self._exchange.held_until)
        if self.options.exit_when_empty or self.options.ack == "manual":
            timers.append(now + _LOOK_AGAIN)
        return timers

    def _pause(self, seconds: float) -> None:
        """Sleep until the bell or the wake rings, at most so long."""
        waiting = [self._wake.fileno(), *self._bell.filenos()]
        ready, _, _ = select.select(waiting, [], [], max(0.0, seconds))
        if self._wake.fileno() in ready:
            self._wake.clear()
        self._exchange.rung(self._bell.heard(ready))

    @property
    def _in_hand(self) -> bool:
        return any(part.queue or not part.idle for part in self._parts.values())

    def _idle_too_long(self) -> bool:
        if not self.options.idle_exit_ms:
            return False
        now = self._clock.monotonic()
        if self._in_hand:
            self._outlet.active = now
        return now - self._outlet.active >= self.options.idle_exit_ms / 1000

    def _nothing_left(self) -> bool:
        if not self.options.exit_when_empty or self._ending.drain:
            return False
        if self._in_hand or any(part.cursor for part in self._parts.values()):
            return False
        self._left = self._standing()
        return not self._left.startable

    def _reconnect(self, error: Unreachable) -> None:
        """Come back by ourselves, at a bounded rate, with nothing assumed.

        Raises the error when it is time to end.
        """
        self._note(f"{error.message}; reconnecting")
        self._bell.drop()
        pause = 0.05
        while True:
            self._ending.obey()
            if self._ending.late or (self._ending.drain and not self._in_hand):
                self.drained = not self._in_hand
                raise error
            try:
                self._session.reopen()
                self._roster.recover()
            except Unreachable:
                self._pause(pause)
                pause = min(2.0, pause * 2)
                continue
            self._note("connected again")
            return


__all__ = ["Consumer", "HandlerBroken", "NameInUse", "Sink"]
