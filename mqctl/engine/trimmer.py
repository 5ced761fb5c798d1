"""Retention that loses nothing: trims what all groups have finished, sweeps bodies.

The holder of a partition does it; several groups doing it do no harm. An entry always
goes before its body, so that nobody meets one whose body mqctl has removed; a crash in
between leaves a body that no entry refers to, and the sweep finds it.
"""

import shlex
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mqctl.codecs import native
from mqctl.core import units
from mqctl.core.assignment import Slot
from mqctl.core.errors import MqError, Undecodable, Unreachable
from mqctl.core.retention import ORPHAN_MS, Retention, abandoned, home_of, orphaned
from mqctl.engine import admin, payloads, topics
from mqctl.engine.session import Session
from mqctl.store import scripts
from mqctl.store.wire import Command, Reply, ServerError

BEGINNING = "-"
"""Where looking for finished entries with a body aside begins."""

_PAGE = 200  # entries of one script: the server stands still for about a millisecond
_TRIP = 8  # scripts sent at once
_BUDGET = 0.05  # seconds of one tick
_REST = 0.25  # seconds until the next when there is more: a fifth of the time is used
_REPORT = 3600.0  # seconds between two looks at a group that holds back much
_SWEEP_PAGE = 200


@dataclass(frozen=True, slots=True)
class Page:
    """What one step removed from a partition, and how to go on.

    `left` entries are there; `bodies_from` is for the next step; `holding` are the
    groups for which entries stay that retention would remove.
    """

    removed: int
    bodies: int
    more: bool
    left: int
    bodies_from: str
    holding: tuple[str, ...]


@dataclass(slots=True)
class Trimmed:
    """What one tick removed: entries by number or age, bodies with theirs, orphans."""

    entries: int = 0
    bodies: int = 0
    orphans: int = 0


def trim_pages(
    session: Session, kept: Retention, places: dict[Slot, str]
) -> dict[Slot, Page | MqError]:
    """Take one step on each partition; one trip, one more for each with bodies.

    `places` says from where to look for finished entries with a body aside ("": not).
    """
    wire, keys = session.wire, session.keys
    replies = wire.batch(
        [
            scripts.trim_finished(
                wire,
                keys.partition(*slot),
                keep=kept.keep,
                age_ms=kept.keep_for_ms,
                page=_PAGE,
                bodies_from=place,
            )
            for slot, place in places.items()
        ]
    )
    return {s: _page(session, s, r) for s, r in zip(places, replies, strict=True)}


def _page(session: Session, slot: Slot, reply: Reply) -> Page | MqError:
    if isinstance(reply, ServerError):
        return reply.explained(f"trimming {slot[0]}[{slot[1]}]")
    removed, more, left, place, holding, rows = reply
    bodies = drop_bodies(session, slot, rows)
    names = tuple(map(admin.text, holding))
    return Page(removed, bodies, bool(more), left, place.decode(), names)


def drop_bodies(session: Session, slot: Slot, rows: list[Reply]) -> int:
    """Delete the bodies of entries that have been removed; return how many there were.

    `rows` are (id, fields). Only bodies of the same topic are touched, whatever an
    entry says. One trip, none without bodies.
    """
    refs = [ref for entry, flat in rows if (ref := _body_of(slot, entry, flat))]
    prefix = session.keys.payload_prefix
    homes = {ref: home_of(prefix, ref) for ref in refs}
    ours = [ref for ref, home in homes.items() if home and home[0] == slot[0]]
    payloads.drop(session, slot[0], ours)
    return len(ours)


def _body_of(slot: Slot, entry: bytes, flat: list[bytes]) -> str | None:
    try:
        return native.decode(*slot, entry.decode(), flat).payload_ref
    except Undecodable:
        return None  # left to the sweep


def sweep(session: Session, skip: int) -> tuple[int, int | None]:
    """Take one step through the bodies, oldest first, and delete orphans.

    `skip` bodies have been looked at and stay. Returns how many were deleted, and the
    `skip` of the next step, None at the end. Three trips, one more per further topic.
    """
    keys, now = session.keys, session.clock.now_ms()
    rows = session.wire.call(
        *("ZRANGE", keys.payload_times, skip, skip + _SWEEP_PAGE - 1, "WITHSCORES")
    )
    old = {
        admin.text(ref): float(ms)
        for ref, ms in zip(rows[::2], rows[1::2], strict=True)
        if float(ms) + ORPHAN_MS < now
    }
    homes = {r: home for r in old if (home := home_of(keys.payload_prefix, r))}
    slots = list(dict.fromkeys(homes.values()))
    found = admin.streams(session, [keys.partition(*slot) for slot in slots])
    infos = dict(zip(slots, found, strict=True))
    orphans: dict[str, list[str]] = {}
    for ref, home in homes.items():
        if orphaned(
            old[ref],
            now_ms=now,
            first_id=infos[home].first_id,
            generated_id=infos[home].generated_id,
        ):
            orphans.setdefault(home[0], []).append(ref)
    for topic, refs in orphans.items():
        payloads.drop(session, topic, refs)
    removed = sum(map(len, orphans.values()))
    more = len(old) == _SWEEP_PAGE
    return removed, skip + len(old) - removed if more else None


class Trimmer:
    """Keeps the partitions held within their retention.

    Every interval, and at once for a partition that is new here; a tick takes about
    50 ms at most and is followed by another soon when there is more. `note` gets lines
    for people: abandoned groups that hold back more than retention allows, and what
    the server refuses. Retention failing never stops a consumer: only Unreachable is
    raised.
    """

    def __init__(
        self, session: Session, kept: Retention, note: Callable[[str], None]
    ) -> None:
        self._session = session
        self._kept = kept
        self._note = note
        self._due: dict[Slot, float] = {}
        self._places: dict[Slot, str] = {}
        self._swept = 0
        self._sweep_due = 0.0
        self._looked: dict[tuple[str, str], float] = {}
        self._first_seen: dict[tuple[str, str], int] = {}
        self._told: set[str] = set()

    @property
    def next_timer(self) -> float:
        """Return when (monotonic) the next partition is due; infinity without any."""
        return min(self._due.values(), default=float("inf"))

    def tick(self, now: float, held: Iterable[Slot]) -> Trimmed:
        """Do what is due for the partitions held, at `now` (monotonic seconds)."""
        self._due = {slot: self._due.get(slot, now) for slot in held}
        self._places = {s: p for s, p in self._places.items() if s in self._due}
        done = Trimmed()
        waiting = [slot for slot, due in self._due.items() if due <= now]
        if not waiting:
            return done
        waiting.sort(key=self._due.__getitem__)
        clock = self._session.clock
        end = clock.monotonic() + _BUDGET
        left = self._trim(deque(waiting), now, end, done)
        for slot in left:
            self._due[slot] = now + _REST
        if not left and now >= self._sweep_due:
            self._sweep(now, end, done)
        return done

    def _trim(
        self, due: deque[Slot], now: float, end: float, done: Trimmed
    ) -> deque[Slot]:
        """Trim until nothing is due or time is up; return what is left to do."""
        aside = self._with_bodies({topic for topic, _ in due})
        while due:
            some = [due.popleft() for _ in range(min(_TRIP, len(due)))]
            places = {
                slot: self._places.get(slot, BEGINNING) if slot[0] in aside else ""
                for slot in some
            }
            pages = trim_pages(self._session, self._kept, places)
            for slot, page in pages.items():
                if self._absorb(slot, page, now, done):
                    due.append(slot)
            if self._session.clock.monotonic() >= end:
                break
        return due

    def _with_bodies(self, names: set[str]) -> set[str]:
        """Return the topics of which finished bodies are to be removed; one trip."""
        if self._kept.keep_payloads:
            return set()
        index = self._session.keys.payload_index
        counts = self._session.wire.batch([("SCARD", index(name)) for name in names])
        return {
            name
            for name, count in zip(names, counts, strict=True)
            if not isinstance(count, ServerError) and count
        }

    def _absorb(
        self, slot: Slot, page: Page | MqError, now: float, done: Trimmed
    ) -> bool:
        """Take one step's answer in; return whether there is more to do now."""
        self._due[slot] = now + self._kept.interval_ms / 1000
        if isinstance(page, MqError):
            self._say(page.message)
            return False
        done.entries += page.removed
        done.bodies += page.bodies
        if page.bodies_from:
            self._places[slot] = page.bodies_from
        if not page.more and page.left > self._kept.keep:
            for group in page.holding:
                self._look_at(slot, group, page.left, now)
        return page.more

    def _sweep(self, now: float, end: float, done: Trimmed) -> None:
        """Look for orphans until all bodies are seen or time is up."""
        self._sweep_due = now + self._kept.interval_ms / 1000
        try:
            while True:
                removed, following = sweep(self._session, self._swept)
                done.orphans += removed
                self._swept = following or 0
                if following is None or self._session.clock.monotonic() >= end:
                    return
        except Unreachable:
            raise
        except MqError as error:
            self._say(error.message)

    def _say(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._note(text)

    # -- abandoned groups -----------------------------------------------------

    def _look_at(self, slot: Slot, group: str, left: int, now: float) -> None:
        """Report a group that holds back entries and has long shown no life.

        A group that never showed any counts from when it was first seen here.
        """
        topic, index = slot
        known = self._looked.get((topic, group))
        if known is not None and now - known < _REPORT:
            return
        self._looked[topic, group] = now
        server_now = self._session.clock.now_ms()
        seen = self._first_seen.setdefault((topic, group), server_now)
        sign = last_sign(self._session, topic, group) or seen
        if not abandoned(sign, server_now):
            return
        age = units.short_duration(units.coarse(server_now - sign))
        command = shlex.join(["mqctl", "admin", "delete-group", topic, group])
        self._note(
            f"group {group} has shown no sign of life for {age} and holds back "
            f"{units.grouped(left)} entries of {topic}[{index}]: they are kept; "
            f"if it is not needed any more: {command}"
        )


def last_sign(session: Session, topic: str, group: str) -> int | None:
    """Return when (epoch ms) a member of the group last showed that it lives.

    A beat, a lease that runs, an acknowledgement or a read, in any partition of the
    topic. None when nothing was ever seen. Two trips.
    """
    keys, now = session.keys, session.clock.now_ms()
    commands: list[Command] = [("ZREVRANGE", keys.members(group), 0, 0, "WITHSCORES")]
    for index in range(topics.count(session, topic)):
        commands += [
            ("PTTL", keys.lease(topic, group, index)),
            ("HGET", keys.acked(topic, index), group),
            ("XINFO", "CONSUMERS", keys.partition(topic, index), group),
        ]
    beat, *rest = admin.trips(session, commands)
    signs = [] if isinstance(beat, ServerError) else [int(float(b)) for b in beat[1:]]
    for lease, acked, consumers in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if not isinstance(lease, ServerError) and lease > 0:
            signs.append(now)
        if not isinstance(acked, ServerError) and acked:
            signs.append(int(acked.split(b" ")[0]))
        if not isinstance(consumers, ServerError):
            signs += [now - admin.fields_of(row)[b"idle"] for row in consumers]
    return max(signs, default=None)
