"""The two forms of settling do the same: one script, or steps in their order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from mqctl.core.errors import NotFound, OutOfMemory, WrongType
from mqctl.engine.session import Session
from mqctl.engine.settle import Settled, Settlement, Step, settle_all
from mqctl.store.url import parse_url
from tests.support.server import Server

TOPIC, GROUP = "orders", "g"
FIELDS = [b"payload", bytes(range(256))]
LONG = 2**63 - 1


@dataclass
class Desk:
    """One partition of a topic, and a consumer `me` that holds its lease."""

    server: Server
    session: Session
    topic: str

    def __post_init__(self) -> None:
        keys = self.session.keys
        self.stream = keys.partition(self.topic, 0)
        self.lease = keys.lease(self.topic, GROUP, 0)
        self.commit = keys.commit(self.topic, 0)
        self.acked = keys.acked(self.topic, 0)
        self.retries = keys.retries(self.topic)
        self.dlq = keys.dlq(self.topic)
        self.call = self.server.call
        self.call("SET", self.lease, "me")
        self.call("XGROUP", "CREATE", self.stream, GROUP, "0", "MKSTREAM")

    def deliver(self, count: int, consumer: str = "me") -> list[str]:
        add = """for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], '*', 'n', i) end"""
        self.call("EVAL", add, 1, self.stream, count)
        ((_, entries),) = self.call(
            *("XREADGROUP", "GROUP", GROUP, consumer, "COUNT", count),
            *("STREAMS", self.stream, ">"),
        )
        return [entry.decode() for entry, _ in entries]

    def settle(self, *steps: Step, acks: list[str] | None = None) -> Settled:
        (answer,) = settle_all(self.session, [self.order(*steps, acks=acks)])
        assert isinstance(answer, Settled)
        return answer

    def order(self, *steps: Step, acks: list[str] | None = None) -> Settlement:
        return Settlement(self.topic, 0, GROUP, "me", acks or [], list(steps))

    def step(self, kind: str, entry: str, **given: Any) -> Step:
        fields = [] if kind == "ack" else FIELDS
        item = self.session.keys.retry_item(self.topic, "1") if kind == "later" else ""
        return Step(kind, entry, fields, item=item, **given)

    def pending(self) -> list[str]:
        rows = self.call("XPENDING", self.stream, GROUP, "-", "+", 100_000)
        return [row[0].decode() for row in rows]

    def frontier(self) -> str | None:
        found = self.call("HGET", self.commit, GROUP)
        return found.decode() if found else None

    def state(self) -> list[Any]:
        """Everything on the server that settling may change, but the times."""
        keys = sorted(self.call("KEYS", "*"))
        dead = self.call("XRANGE", self.dlq, "-", "+")
        return [
            [key for key in keys if key != self.lease.encode()],
            self.pending(),
            self.frontier(),
            [flat for _, flat in self.call("XRANGE", self.stream, "-", "+")],
            [flat for _, flat in dead],
            self.call("ZRANGE", self.retries, 0, -1),
        ]


@pytest.fixture(params=["script", "script on a cluster", "steps"])
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    alone = request.param == "script"
    server = request.getfixturevalue("redis" if alone else "cluster_redis")
    topic = "{orders}" if request.param == "script on a cluster" else TOPIC
    session = Session.open(parse_url(server.url, tls=None))
    opened = Desk(server, session, topic)
    assert session.atomic([opened.stream, opened.lease]) == (request.param != "steps")
    yield opened
    session.close()


def test_acknowledged_is_finished_and_counted_once(desk: Desk) -> None:
    ids = desk.deliver(3)
    assert desk.settle(acks=ids) == Settled(lost=False, results=[])
    assert desk.pending() == []
    assert desk.frontier() == ids[-1]
    first = desk.state()
    assert desk.settle(acks=ids) == Settled(lost=False, results=[])
    assert desk.state() == first
    assert desk.call("HGET", desk.acked, GROUP).endswith(b" me")


def test_each_kind_writes_once_however_often_it_is_asked(desk: Desk) -> None:
    ids = desk.deliver(5)
    kinds = ["ack", "again", "later", "dead"]
    steps = [
        desk.step(kind, entry, delay_ms=60_000)
        for kind, entry in zip(kinds, ids, strict=False)
    ]
    assert desk.settle(*steps, acks=ids[4:]).results == ["done"] * 4
    first = desk.state()
    assert desk.settle(*steps, acks=ids[4:]).results == ["already"] * 4
    assert desk.state() == first
    assert desk.pending() == []
    assert first[3][5:] == [FIELDS]
    assert first[4] == [FIELDS]
    assert first[5] == [steps[2].item.encode()]
    assert desk.call("HGETALL", steps[2].item) == FIELDS
    now = desk.session.clock.now_ms()
    due = int(desk.call("ZSCORE", desk.retries, steps[2].item))
    assert now + 50_000 < due <= now + 61_000


@pytest.mark.parametrize("holder", ["other", None])
def test_without_the_lease_nothing_is_done(desk: Desk, holder: str | None) -> None:
    ids = desk.deliver(4)
    desk.call("DEL", desk.lease)
    if holder:
        desk.call("SET", desk.lease, holder)
    before = desk.state()
    kinds = ["ack", "again", "later", "dead"]
    steps = [desk.step(kind, entry) for kind, entry in zip(kinds, ids, strict=True)]
    assert desk.settle(*steps, acks=ids) == Settled(lost=True, results=[])
    assert desk.state() == before


def test_the_entry_fence_asks_for_no_lease(desk: Desk) -> None:
    (entry,) = desk.deliver(1)
    desk.call("SET", desk.lease, "other")
    order = replace(desk.order(desk.step("dead", entry)), fence="entry")
    assert settle_all(desk.session, [order]) == [Settled(lost=False, results=["done"])]
    assert desk.pending() == []


@pytest.mark.parametrize("kind", ["ack", "again", "later", "dead"])
def test_an_entry_of_somebody_else_is_left_alone(desk: Desk, kind: str) -> None:
    (entry,) = desk.deliver(1, "other")
    before = desk.state()[1:]
    before[1] = f"{int(entry.split('-')[0]) - 1}-{LONG}"
    assert desk.settle(desk.step(kind, entry)).results == ["lost"]
    assert desk.state()[1:] == before
    assert desk.call("EXISTS", desk.acked) == 0


@pytest.mark.parametrize("kind", ["ack", "again", "later", "dead"])
def test_deliveries_tell_what_was_taken_away_meanwhile(desk: Desk, kind: str) -> None:
    (entry,) = desk.deliver(1)
    desk.call("XCLAIM", desk.stream, GROUP, "me", 0, entry)
    assert desk.settle(desk.step(kind, entry, deliveries=1)).results == ["lost"]
    assert desk.pending() == [entry]
    assert desk.settle(desk.step(kind, entry, deliveries=2)).results == ["done"]
    assert desk.pending() == []


def test_one_lost_step_stops_no_other(desk: Desk) -> None:
    ids = desk.deliver(3)
    desk.call("XCLAIM", desk.stream, GROUP, "other", 0, ids[0])
    steps = [desk.step("dead", entry) for entry in ids]
    assert desk.settle(*steps).results == ["lost", "done", "done"]
    assert desk.pending() == ids[:1]
    assert desk.call("XLEN", desk.dlq) == 2


def test_twenty_thousand_acknowledgements_at_once(desk: Desk) -> None:
    ids = desk.deliver(20_000)
    desk.settle(acks=ids[:-1])
    assert desk.pending() == ids[-1:]
    assert desk.frontier() == just_below(ids[-1])
    desk.settle(acks=ids)
    assert desk.frontier() == ids[-1]


def just_below(entry: str) -> str:
    ms, seq = map(int, entry.split("-"))
    return f"{ms}-{seq - 1}" if seq else f"{ms - 1}-{LONG}"


def test_the_frontier_never_passes_a_hole(desk: Desk) -> None:
    for entry in ("5-1", "5-2", "6-0", f"6-{LONG}", f"6-{2**64 - 1}"):
        desk.call("XADD", desk.stream, entry, "n", 1)
    desk.call("XREADGROUP", "GROUP", GROUP, "me", "STREAMS", desk.stream, ">")
    found = []
    for entry in ("5-2", "5-1", "6-0", f"6-{LONG}", f"6-{2**64 - 1}"):
        desk.settle(acks=[entry])
        found.append(desk.frontier())
    assert found == [
        "5-0",
        f"5-{LONG}",
        f"6-{LONG - 1}",
        f"6-{2**64 - 2}",
        f"6-{2**64 - 1}",
    ]


def test_the_frontier_never_falls(desk: Desk) -> None:
    (entry,) = desk.deliver(1)
    desk.call("HSET", desk.commit, GROUP, f"{2**64 - 1}-1")
    desk.settle(acks=[entry])
    assert desk.frontier() == f"{2**64 - 1}-1"


def test_many_partitions_are_settled_in_one_go(desk: Desk) -> None:
    ids = desk.deliver(2)
    keys = desk.session.keys
    other = keys.partition(desk.topic, 1)
    desk.call("XGROUP", "CREATE", other, GROUP, "0", "MKSTREAM")
    desk.call("SET", keys.lease(desk.topic, GROUP, 1), "other")
    orders = [
        desk.order(acks=ids[:1]),
        replace(desk.order(acks=["1-1"]), partition=1),
        desk.order(desk.step("dead", ids[1])),
    ]
    assert settle_all(desk.session, orders) == [
        Settled(lost=False, results=[]),
        Settled(lost=True, results=[]),
        Settled(lost=False, results=["done"]),
    ]


def without_group(desk: Desk) -> None:
    desk.call("XGROUP", "DESTROY", desk.stream, GROUP)


def without_stream(desk: Desk) -> None:
    desk.call("DEL", desk.stream)


@pytest.mark.parametrize("gone", [without_group, without_stream])
def test_a_group_or_topic_that_is_gone_is_told_and_gets_no_traces(
    desk: Desk, gone: Callable[[Desk], None]
) -> None:
    ids = desk.deliver(2)
    gone(desk)
    before = desk.call("KEYS", "*")
    for order in (desk.order(acks=ids), desk.order(desk.step("dead", ids[0]))):
        (answer,) = settle_all(desk.session, [order])
        assert isinstance(answer, NotFound)
    assert desk.call("KEYS", "*") == before


def test_one_group_that_is_gone_hides_no_other_result(desk: Desk) -> None:
    (entry,) = desk.deliver(1)
    gone = replace(desk.order(acks=["1-1"]), partition=1)
    desk.call("SET", desk.session.keys.lease(desk.topic, GROUP, 1), "me")
    answers = settle_all(desk.session, [gone, desk.order(desk.step("ack", entry))])
    assert isinstance(answers[0], NotFound)
    assert answers[1] == Settled(lost=False, results=["done"])


def test_a_write_that_fails_keeps_its_entry_and_no_other(desk: Desk) -> None:
    ids = desk.deliver(3)
    desk.call("SET", desk.dlq, "no stream")
    steps = [
        desk.step("again", ids[0]),
        desk.step("later", ids[1]),
        desk.step("dead", ids[2]),
    ]
    for _ in range(3):
        with pytest.raises(WrongType):
            desk.settle(*steps)
    assert desk.pending() == ids[2:]
    assert desk.call("XLEN", desk.stream) == 4
    assert desk.call("ZCARD", desk.retries) == 1


def test_an_item_that_gets_no_due_time_keeps_its_entry(desk: Desk) -> None:
    (entry,) = desk.deliver(1)
    desk.call("SET", desk.retries, "no set")
    with pytest.raises(WrongType):
        desk.settle(desk.step("later", entry))
    assert desk.pending() == [entry]


@pytest.mark.parametrize("kind", ["again", "later", "dead"])
def test_a_full_server_keeps_what_it_cannot_write(desk: Desk, kind: str) -> None:
    ids = desk.deliver(2)
    desk.call("CONFIG", "SET", "maxmemory", 1)
    try:
        with pytest.raises(OutOfMemory):
            desk.settle(desk.step(kind, ids[0]))
        assert desk.pending() == ids
    finally:
        desk.call("CONFIG", "SET", "maxmemory", 0)
    assert desk.settle(desk.step(kind, ids[0])).results == ["done"]
    assert desk.pending() == ids[1:]


def test_a_forgotten_script_is_sent_again(desk: Desk) -> None:
    ids = desk.deliver(2)
    desk.settle(desk.step("dead", ids[0]))
    desk.call("SCRIPT", "FLUSH")
    assert desk.settle(desk.step("dead", ids[1])).results == ["done"]
    assert desk.call("XLEN", desk.dlq) == 2


def test_after_a_reset_what_is_to_be_read_again_is_not_finished(desk: Desk) -> None:
    ids = desk.deliver(5)
    desk.settle(acks=ids[:3])
    desk.call("XGROUP", "SETID", desk.stream, GROUP, "0")
    desk.call("HSET", desk.commit, GROUP, "0-0")

    desk.settle(acks=ids[3:4])

    assert desk.call("HGET", desk.commit, GROUP) == b"0-0"
