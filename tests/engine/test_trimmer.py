"""Retention on a real server: alone, on a cluster, with and without a common slot."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from mqctl.codecs import native
from mqctl.core.assignment import Slot
from mqctl.core.retention import Retention
from mqctl.engine import payloads, topics, trimmer
from mqctl.engine.ack_delete import delete_acked
from mqctl.engine.session import Session
from mqctl.engine.trimmer import Trimmed, Trimmer
from mqctl.store.url import parse_url
from tests.support.server import Server

HOUR = 3_600_000


@dataclass
class Yard:
    """A topic of two partitions, groups that read it, and time that can be moved."""

    server: Server
    session: Session
    topic: str
    notes: list[str] = field(default_factory=list)
    now: float = 1000.0

    def __post_init__(self) -> None:
        self.call = self.server.call
        topics.ensure(self.session, self.topic, 2)

    def stream(self, index: int = 0) -> str:
        return self.session.keys.partition(self.topic, index)

    def add(self, count: int, index: int = 0) -> list[str]:
        script = """local ids = {}
        for i = 1, ARGV[1] do ids[i] = redis.call('XADD', KEYS[1], '*', 'n', i) end
        return ids"""
        return [
            i.decode() for i in self.call("EVAL", script, 1, self.stream(index), count)
        ]

    def ids(self, index: int = 0) -> list[str]:
        return [
            i.decode() for i, _ in self.call("XRANGE", self.stream(index), "-", "+")
        ]

    def group(self, name: str, upto: str = "0", index: int = 0) -> None:
        self.call("XGROUP", "CREATE", self.stream(index), name, upto, "MKSTREAM")

    def read(self, name: str, count: int) -> list[str]:
        got = self.call(
            *("XREADGROUP", "GROUP", name, f"{name}-1", "COUNT", count),
            *("STREAMS", self.stream(), ">"),
        )
        return [entry.decode() for entry, _ in got[0][1]] if got else []

    def ack(self, name: str, ids: list[str]) -> None:
        if ids:
            self.call("XACK", self.stream(), name, *ids)

    def body(self, entry_id: str = "*", *, ref: str | None = None) -> tuple[str, str]:
        """Store a message with its body aside; return its id and the body's key."""
        key = ref or payloads.store(self.session, self.topic, 0, b"a body")
        fields = native.aside_fields(
            topic=self.topic,
            partition=0,
            payload=b"a body",
            ref=key,
            key=None,
            headers={},
            timestamp="2026-11-30T22:09:09.706Z",
            retry_count=0,
            max_retries=3,
        )
        return self.call("XADD", self.stream(), entry_id, *fields).decode(), key

    def old_orphan(self) -> str:
        """Leave a body behind as a crash two hours ago did."""
        self.pass_time(-2 * HOUR)
        ref = payloads.store(self.session, self.topic, 0, b"nobody's")
        self.pass_time(2 * HOUR)
        return ref

    def there(self, ref: str) -> tuple[bool, bool, bool]:
        """Whether a body is there, in its topic's index and among the times."""
        keys = self.session.keys
        return (
            bool(self.call("EXISTS", ref)),
            bool(self.call("SISMEMBER", keys.payload_index(self.topic), ref)),
            self.call("ZSCORE", keys.payload_times, ref) is not None,
        )

    def trimmer(self, **kept: Any) -> Trimmer:
        return Trimmer(self.session, Retention(**kept), self.notes.append)

    def tick(self, keeper: Trimmer, *held: Slot) -> Trimmed:
        """One interval later, with partition 0 unless others are named."""
        self.now += 60
        return keeper.tick(self.now, held or [(self.topic, 0)])

    def pass_time(self, ms: int) -> None:
        self.session.clock.offset_ms += ms


@pytest.fixture(params=["alone", "cluster", "cluster, one slot"])
def yard(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Yard]:
    """One of the servers; a tick takes as long as it needs, unless a test says so."""
    monkeypatch.setattr(trimmer, "_BUDGET", 60.0)
    alone = request.param == "alone"
    server = request.getfixturevalue("redis" if alone else "cluster_redis")
    topic = "{orders}" if request.param == "cluster, one slot" else "orders"
    session = Session.open(parse_url(server.url, tls=None))
    yield Yard(server, session, topic)
    session.close()


# -- trimming -----------------------------------------------------------------


def test_three_groups_miss_nothing_and_leave_a_bound(yard: Yard) -> None:
    keeper = yard.trimmer(keep=1000)
    seen: dict[str, list[str]] = {"fast": [], "slow": []}
    for name in seen:
        yard.group(name)
    everything: list[str] = []
    first_of_new = 0
    for turn in range(8):
        everything += yard.add(500)
        if turn == 4:
            yard.group("new")
            first_of_new = everything.index(yard.ids()[0])
            seen["new"] = []
        for name, pace in (("fast", 1000), ("slow", 150), ("new", 400)):
            if name in seen:
                got = yard.read(name, pace)
                yard.ack(name, got)
                seen[name] += got
        yard.tick(keeper)
    for name in seen:
        while got := yard.read(name, 1000):
            yard.ack(name, got)
            seen[name] += got
    yard.tick(keeper)
    assert len(everything) == 4000
    assert seen["fast"] == seen["slow"] == everything
    assert seen["new"] == everything[first_of_new:]
    assert yard.ids() == everything[-1000:]
    assert yard.notes == []


def test_holes_hold_back_until_they_are_closed(yard: Yard) -> None:
    yard.group("g")
    yard.add(50)
    ids = yard.read("g", 50)
    yard.ack("g", ids[:20] + ids[21:])
    keeper = yard.trimmer(keep=10)
    assert yard.tick(keeper) == Trimmed(entries=20)
    assert yard.ids() == ids[20:]
    yard.ack("g", ids[20:21])
    assert yard.tick(keeper) == Trimmed(entries=20)
    assert yard.ids() == ids[40:]


def test_pending_ids_whose_entries_others_trimmed_are_no_obstacle(yard: Yard) -> None:
    yard.group("g")
    everything = yard.add(30)
    ids = yard.read("g", 20)
    yard.call("XTRIM", yard.stream(), "MAXLEN", 25)
    keeper = yard.trimmer(keep=5)
    assert yard.tick(keeper) == Trimmed()
    yard.ack("g", ids)
    assert yard.tick(keeper) == Trimmed(entries=15)
    assert yard.read("g", 100) == yard.ids() == everything[20:]


def test_without_a_group_nothing_is_trimmed(yard: Yard) -> None:
    yard.add(20)
    assert yard.tick(yard.trimmer(keep=5, keep_for_ms=1)) == Trimmed()
    assert len(yard.ids()) == 20


def test_old_finished_entries_go_by_age(yard: Yard) -> None:
    old = yard.session.clock.now_ms() - 2 * HOUR
    for n in range(3):
        yard.call("XADD", yard.stream(), f"{old}-{n}", "n", n)
    yard.add(2)
    yard.group("g", f"{old}-1")
    assert yard.tick(yard.trimmer(keep=0, keep_for_ms=HOUR)) == Trimmed(entries=2)
    assert yard.ids()[0] == f"{old}-2"


def test_a_tick_comes_every_interval_and_at_once_for_what_is_new(yard: Yard) -> None:
    keeper = yard.trimmer(keep=1, interval_ms=60_000)
    assert keeper.next_timer == float("inf")
    for index in range(2):
        yard.add(3, index)
        yard.group("g", "$", index)
    zero, one = (yard.topic, 0), (yard.topic, 1)
    assert keeper.tick(100.0, [zero]) == Trimmed(entries=2)
    assert keeper.next_timer == 160.0
    yard.add(3)
    yard.call("XGROUP", "SETID", yard.stream(), "g", "$")
    assert keeper.tick(130.0, [zero, one]) == Trimmed(entries=2)
    assert len(yard.ids(1)) == 1
    assert keeper.tick(160.0, [zero, one]) == Trimmed(entries=3)
    assert keeper.tick(161.0, [one]) == Trimmed()
    assert keeper.tick(162.0, [zero, one]) == Trimmed()
    assert keeper.next_timer == 190.0


def test_a_tick_ends_when_its_time_is_up_and_goes_on_soon(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trimmer, "_BUDGET", 0.0)
    yard.add(500)
    yard.group("g", "$")
    keeper = yard.trimmer(keep=10)
    assert keeper.tick(10.0, [(yard.topic, 0)]) == Trimmed(entries=200)
    assert keeper.next_timer == 10.25
    assert keeper.tick(10.2, [(yard.topic, 0)]) == Trimmed()
    assert keeper.tick(10.3, [(yard.topic, 0)]) == Trimmed(entries=200)
    assert keeper.tick(10.6, [(yard.topic, 0)]) == Trimmed(entries=90)
    assert keeper.next_timer == 70.6


def test_two_hundred_thousand_finished_entries_come_down_to_the_bound(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trimmer, "_BUDGET", 0.05)
    yard.add(200_000)
    yard.group("g", "$")
    keeper = yard.trimmer()
    ticks = 1
    yard.tick(keeper)
    while keeper.next_timer < yard.now + 1:
        yard.tick(keeper)
        ticks += 1
    assert yard.call("XLEN", yard.stream()) == 100_000
    assert ticks < 1000


def test_a_refusal_is_said_once_and_stops_nothing_else(yard: Yard) -> None:
    yard.call("SET", yard.stream(0), "no stream")
    yard.add(5, 1)
    yard.group("g", "$", 1)
    keeper = yard.trimmer(keep=1)
    both = [(yard.topic, 0), (yard.topic, 1)]
    assert yard.tick(keeper, *both) == Trimmed(entries=4)
    yard.tick(keeper, *both)
    assert len(yard.notes) == 1
    assert yard.notes[0].startswith(f"trimming {yard.topic}[0]: the server says: ")


# -- abandoned groups ---------------------------------------------------------


def abandon(yard: Yard) -> Trimmer:
    """Leave a group with 20 entries whose last sign was an ack 25 hours ago."""
    yard.add(20)
    yard.group("live", "$")
    yard.group("old one")
    since = yard.session.clock.now_ms() - 25 * HOUR
    acked = yard.session.keys.acked(yard.topic, 1)
    yard.call("HSET", acked, "old one", f"{since} gone")
    return yard.trimmer(keep=5)


def test_an_abandoned_group_is_named_once_an_hour(yard: Yard) -> None:
    keeper = abandon(yard)
    assert yard.tick(keeper) == Trimmed()
    (note,) = yard.notes
    assert "group old one has shown no sign of life for 1d1h" in note
    assert f"holds back 20 entries of {yard.topic}[0]" in note
    quoted = yard.topic if yard.topic == "orders" else f"'{yard.topic}'"
    assert note.endswith(f"mqctl admin delete-group {quoted} 'old one'")
    for _ in range(59):
        yard.tick(keeper)
    assert len(yard.notes) == 1
    yard.tick(keeper)
    assert yard.notes == [note, note]
    yard.call("XGROUP", "DESTROY", yard.stream(), "old one")
    assert yard.tick(keeper) == Trimmed(entries=15)


@pytest.mark.parametrize("sign", ["beat", "lease", "ack", "read"])
def test_any_sign_of_life_keeps_a_group_unnamed(yard: Yard, sign: str) -> None:
    keeper = abandon(yard)
    keys, now = yard.session.keys, yard.session.clock.now_ms()
    match sign:
        case "beat":
            yard.call("ZADD", keys.members("old one"), now, "1:-:me")
        case "lease":
            lease = keys.lease(yard.topic, "old one", 1)
            yard.call("SET", lease, "java-1", "PX", 60_000)
        case "ack":
            yard.call("HSET", keys.acked(yard.topic, 0), "old one", f"{now} me")
        case "read":
            yard.read("old one", 1)
    yard.tick(keeper)
    assert yard.notes == []


def test_a_lease_that_never_ends_is_no_sign_of_life(yard: Yard) -> None:
    keeper = abandon(yard)
    yard.call("SET", yard.session.keys.lease(yard.topic, "old one", 0), "java-1")
    yard.tick(keeper)
    assert len(yard.notes) == 1


def test_a_group_within_the_bound_is_not_named(yard: Yard) -> None:
    old = yard.session.clock.now_ms() - 2 * HOUR
    for n in range(20):
        yard.call("XADD", yard.stream(), f"{old}-{n}", "n", n)
    yard.group("gone")
    acked = yard.session.keys.acked(yard.topic, 0)
    yard.call("HSET", acked, "gone", f"{old - 48 * HOUR} me")
    yard.tick(yard.trimmer(keep=20, keep_for_ms=HOUR))
    assert yard.notes == []
    yard.tick(yard.trimmer(keep=19, keep_for_ms=HOUR))
    assert len(yard.notes) == 1


def test_a_group_that_never_showed_life_counts_from_when_it_was_seen(
    yard: Yard,
) -> None:
    yard.add(20)
    yard.group("new")
    keeper = yard.trimmer(keep=5)
    yard.tick(keeper)
    yard.pass_time(23 * HOUR)
    yard.now += 23 * 3600
    yard.tick(keeper)
    assert yard.notes == []
    yard.pass_time(2 * HOUR)
    yard.now += 2 * 3600
    yard.tick(keeper)
    assert len(yard.notes) == 1


# -- bodies stored aside ------------------------------------------------------


def test_a_finished_entry_goes_with_its_body(yard: Yard) -> None:
    yard.group("fast")
    yard.group("slow")
    stored = [yard.body() for _ in range(4)]
    yard.add(3)
    for name, count in (("fast", 7), ("slow", 2)):
        yard.ack(name, yard.read(name, count))
    keeper = yard.trimmer()
    assert yard.tick(keeper) == Trimmed(bodies=2)
    assert yard.ids()[:2] == [entry for entry, _ in stored[2:]]
    states = [yard.there(ref) for _, ref in stored]
    assert states == [(False,) * 3] * 2 + [(True,) * 3] * 2
    yard.ack("slow", yard.read("slow", 9))
    assert yard.tick(keeper) == Trimmed(bodies=2)
    assert len(yard.ids()) == 3
    assert yard.call("EXISTS", yard.session.keys.payload_times) == 0


def test_a_body_that_a_group_still_has_in_hand_stays(yard: Yard) -> None:
    yard.group("g")
    _, ref = yard.body()
    yard.read("g", 1)
    assert yard.tick(yard.trimmer(keep=1, keep_for_ms=1)) == Trimmed()
    assert yard.there(ref) == (True,) * 3


def test_keep_payloads_keeps_both_until_retention_takes_both(yard: Yard) -> None:
    first, second = yard.body(), yard.body()
    yard.group("g", "$")
    assert yard.tick(yard.trimmer(keep_payloads=True)) == Trimmed()
    assert yard.there(first[1]) == (True,) * 3
    keeper = yard.trimmer(keep=1, keep_payloads=True)
    assert yard.tick(keeper) == Trimmed(entries=1, bodies=1)
    assert yard.there(first[1]) == (False,) * 3
    assert yard.there(second[1]) == (True,) * 3


def test_references_to_anything_else_delete_nothing(yard: Yard) -> None:
    keys = yard.session.keys
    others = [
        payloads.store(yard.session, "other", 0, b"x"),
        *("precious", keys.payload_times, keys.payload_index("other"), keys.registry),
    ]
    yard.call("SET", "precious", "1")
    _, mine = yard.body()
    for ref in others:
        yard.body(ref=ref)
    yard.group("g", "$")
    assert yard.tick(yard.trimmer()) == Trimmed(bodies=1)
    assert yard.ids() == []
    assert [yard.call("EXISTS", ref) for ref in others] == [1] * len(others)
    assert yard.call("EXISTS", mine) == 0


def test_an_entry_goes_before_its_body_and_a_crash_between_is_swept(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ref = yard.body()
    yard.group("g", "$")
    found: list[Any] = []

    def crash(*_: object) -> None:
        found.append((yard.ids(), yard.there(ref)))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(payloads, "drop", crash)
        with pytest.raises(KeyboardInterrupt):
            yard.tick(yard.trimmer())
    assert found == [([], (True,) * 3)]
    assert yard.tick(yard.trimmer()) == Trimmed()
    yard.pass_time(HOUR + 1000)
    assert yard.tick(yard.trimmer()) == Trimmed(orphans=1)
    assert yard.there(ref) == (False,) * 3


@dataclass
class Reader:
    """A group that reads and finishes messages with bodies, in any order."""

    yard: Yard
    name: str
    random: Random
    seen: list[str] = field(default_factory=list)
    hands: list[str] = field(default_factory=list)

    def read(self) -> None:
        got = self.yard.read(self.name, self.random.randint(1, 5))
        self.seen += got
        self.hands += got

    def finish(self) -> None:
        self.random.shuffle(self.hands)
        count = self.random.randint(0, len(self.hands))
        ids, self.hands = self.hands[:count], self.hands[count:]
        slot = (self.yard.topic, 0)
        for entry in ids:
            ((_, flat),) = self.yard.call("XRANGE", self.yard.stream(), entry, entry)
            message = native.decode(*slot, entry, flat)
            (loaded,) = payloads.load(self.yard.session, [message])
            assert loaded is not None
            assert loaded.payload == b"a body"
        self.yard.ack(self.name, ids)
        if self.random.random() < 0.5:
            session = self.yard.session
            delete_acked(session, "all-groups-ack", slot, self.name, ids)


@pytest.mark.parametrize("seed", range(6))
def test_no_reader_meets_an_entry_without_its_body(yard: Yard, seed: int) -> None:
    """Any order of sending, reading, finishing, trimming and removing with the ack."""
    random = Random(seed)
    keeper = yard.trimmer(keep=random.choice([3, 1000]))
    readers = [Reader(yard, name, random) for name in "ab"]
    sent: list[str] = []
    for reader in readers:
        yard.group(reader.name)
    for _ in range(80):
        reader = random.choice(readers)
        match random.randrange(4):
            case 0:
                sent.append(yard.body()[0])
            case 1:
                reader.read()
            case 2:
                reader.finish()
            case _:
                yard.tick(keeper)
    for reader in readers:
        for _ in range(100):
            reader.read()
            reader.finish()
        assert reader.seen == sent
        assert reader.hands == []
    yard.tick(keeper)
    assert yard.ids() == []
    assert yard.call("EXISTS", yard.session.keys.payload_times) == 0


# -- orphans ------------------------------------------------------------------


def test_orphans_go_and_bodies_of_waiting_entries_stay(yard: Yard) -> None:
    yard.pass_time(-3 * HOUR)
    old = yard.session.clock.now_ms()
    _, waiting = yard.body(f"{old}-0")
    yard.pass_time(3 * HOUR)
    orphan = yard.old_orphan()
    yard.group("g")
    keeper = yard.trimmer()
    assert yard.tick(keeper) == Trimmed()  # it is not older than the oldest entry
    assert yard.there(waiting) == (True,) * 3
    _, fresh = yard.body()
    yard.ack("g", yard.read("g", 1))
    assert yard.tick(keeper) == Trimmed(bodies=1, orphans=1)
    assert yard.there(orphan) == (False,) * 3
    assert yard.there(fresh) == (True,) * 3


def test_orphans_behind_many_live_bodies_are_found(yard: Yard) -> None:
    """Those of partition 1 wait, for two hours; then come orphans of partition 0."""
    keys = yard.session.keys
    past = yard.session.clock.now_ms() - 4 * HOUR
    yard.call("XADD", yard.stream(1), f"{past}-0", "n", 1)
    live = [keys.payload(yard.topic, 1, f"u{n}") for n in range(450)]
    scored = [arg for n, ref in enumerate(live) for arg in (past + n, ref)]
    yard.call("ZADD", keys.payload_times, *scored, past, "no body's key")
    orphans = [yard.old_orphan() for _ in range(5)]
    yard.add(1)
    assert yard.tick(yard.trimmer()) == Trimmed(orphans=5)
    assert [yard.there(ref) for ref in orphans] == [(False,) * 3] * 5
    assert yard.call("ZCARD", keys.payload_times) == 451


def test_more_orphans_than_one_step_takes_go_in_one_tick(yard: Yard) -> None:
    keys = yard.session.keys
    past = yard.session.clock.now_ms() - 4 * HOUR
    scored = [
        a for n in range(450) for a in (past, keys.payload(yard.topic, 0, f"{n}"))
    ]
    yard.call("ZADD", keys.payload_times, *scored)
    yard.add(1)
    assert yard.tick(yard.trimmer()) == Trimmed(orphans=450)
    assert yard.call("EXISTS", keys.payload_times) == 0


def test_nothing_is_swept_where_no_stream_says_so(yard: Yard) -> None:
    orphan = yard.old_orphan()
    assert yard.tick(yard.trimmer()) == Trimmed()
    assert yard.there(orphan) == (True,) * 3
