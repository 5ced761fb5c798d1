"""Removing entries with their acknowledgement, compared with the Java library's way."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from mqctl.codecs import native
from mqctl.core.retention import Retention
from mqctl.engine import payloads
from mqctl.engine.ack_delete import ACKSET_TTL_MS, Policy, delete_acked
from mqctl.engine.session import Session
from mqctl.engine.trimmer import Trimmed, Trimmer
from mqctl.store.url import parse_url
from tests.support import golden
from tests.support.server import Server

HOUR = 3_600_000
BOTH = pytest.mark.parametrize("policy", ["immediate", "all-groups-ack"])


@dataclass
class Desk:
    """One partition of a topic and its groups."""

    server: Server
    session: Session
    topic: str = "fan"

    def __post_init__(self) -> None:
        self.call = self.server.call

    @property
    def stream(self) -> str:
        return self.session.keys.partition(self.topic, 0)

    def group(self, name: str) -> None:
        self.call("XGROUP", "CREATE", self.stream, name, "0", "MKSTREAM")

    def add(self, count: int) -> list[str]:
        return [
            self.call("XADD", self.stream, "*", "n", n).decode() for n in range(count)
        ]

    def body(self) -> tuple[str, str]:
        ref = payloads.store(self.session, self.topic, 0, b"a body")
        fields = native.aside_fields(
            topic=self.topic,
            partition=0,
            payload=b"a body",
            ref=ref,
            key=None,
            headers={},
            timestamp="2026-11-30T22:09:09.706Z",
            retry_count=0,
            max_retries=3,
        )
        return self.call("XADD", self.stream, "*", *fields).decode(), ref

    def read(self, name: str, count: int = 999) -> None:
        self.call(
            *("XREADGROUP", "GROUP", name, "me", "COUNT", count),
            *("STREAMS", self.stream, ">"),
        )

    def finish(self, policy: Policy, name: str, ids: list[str]) -> list[str]:
        """Acknowledge, then remove: the two steps of a consumer."""
        self.call("XACK", self.stream, name, *ids)
        return delete_acked(self.session, policy, (self.topic, 0), name, ids)

    def ids(self) -> list[str]:
        return [i.decode() for i, _ in self.call("XRANGE", self.stream, "-", "+")]

    def ack_set(self, entry: str) -> set[bytes]:
        key = self.session.keys.acks(self.topic, 0, entry)
        return set(self.call("SMEMBERS", key))

    def ack_sets(self) -> list[bytes]:
        return list(self.call("KEYS", "streaming:mq:acks:*"))


@pytest.fixture(params=["alone", "cluster", "cluster, one slot"])
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    alone = request.param == "alone"
    server = request.getfixturevalue("redis" if alone else "cluster_redis")
    session = Session.open(parse_url(server.url, tls=None))
    topic = "{fan}" if request.param == "cluster, one slot" else "fan"
    yield Desk(server, session, topic)
    session.close()


def place(ids: list[str], wanted: list[Any]) -> list[int]:
    return [ids.index(row["id"]) for row in wanted]


def test_all_groups_ack_leaves_what_java_leaves(desk: Desk) -> None:
    """The recorded scenario again: alpha acknowledges six of nine, beta three."""
    expect = golden.load("consume_ack_all_groups")["expect"]
    recorded = [row["id"] for row in (*expect["deleted"], *expect["messages"])]
    ids = desk.add(9)
    for name in ("alpha", "beta"):
        desk.group(name)
        desk.read(name)
    assert desk.finish("all-groups-ack", "alpha", ids[:6]) == []
    assert desk.finish("all-groups-ack", "beta", ids[:3]) == ids[:3]
    deleted = place(recorded, expect["deleted"])
    assert [i for i, entry in enumerate(ids) if entry not in desk.ids()] == deleted
    counted = place(recorded, expect["ack_sets"])
    assert len(desk.ack_sets()) == len(counted)
    for index, row in zip(counted, expect["ack_sets"], strict=True):
        assert desk.ack_set(ids[index]) == {name.encode() for name in row["groups"]}
        key = desk.session.keys.acks(desk.topic, 0, ids[index])
        assert ACKSET_TTL_MS - 60_000 < desk.call("PTTL", key) <= ACKSET_TTL_MS


def test_immediate_leaves_what_java_leaves(desk: Desk) -> None:
    expect = golden.load("consume_ack_immediate")["expect"]
    deleted = [row["id"] for row in expect["deleted"] if row["partition"] == 0]
    kept = [row["id"] for row in expect["messages"] if row["partition"] == 0]
    ids = desk.add(len(deleted) + len(kept))
    desk.group("pool")
    desk.read("pool", 10)
    assert desk.finish("immediate", "pool", ids[: len(deleted)]) == ids[: len(deleted)]
    assert len(desk.ids()) == len(kept)
    (row,) = [g for g in expect["groups"] if g["partition"] == 0]
    assert desk.call("XPENDING", desk.stream, "pool")[0] == len(row["pending"])
    assert desk.ack_sets() == []


@pytest.mark.parametrize("where", ["redis", "cluster_redis"])
def test_a_java_fleet_s_ack_sets_are_carried_on(
    request: pytest.FixtureRequest, where: str
) -> None:
    server = request.getfixturevalue(where)
    golden.restore(server.call, golden.load("consume_ack_all_groups"))
    session = Session.open(parse_url(server.url, tls=None))
    desk = Desk(server, session)
    half, *_ = ids = desk.ids()
    assert desk.finish("all-groups-ack", "beta", [half]) == [half]
    assert desk.ids() == ids[1:]
    assert desk.ack_set(half) == set()
    assert desk.finish("all-groups-ack", "alpha", [ids[3]]) == []
    assert desk.ack_set(ids[3]) == {b"alpha"}
    session.close()


def test_groups_without_a_lease_count(desk: Desk) -> None:
    ids = desk.add(3)
    for name in ("here", "stopped", "not started"):
        desk.group(name)
    desk.read("here")
    desk.read("stopped", 1)
    assert desk.finish("all-groups-ack", "here", ids) == []
    assert desk.ids() == ids


def test_the_last_of_several_groups_removes(desk: Desk) -> None:
    ids = desk.add(250)
    names = ["a", "b", "c"]
    for name in names:
        desk.group(name)
        desk.read(name)
    gone = [desk.finish("all-groups-ack", name, ids) for name in names]
    assert gone == [[], [], ids]
    assert desk.ids() == []
    assert desk.ack_sets() == []


@BOTH
def test_nothing_to_remove_is_no_command_at_all(desk: Desk, policy: Policy) -> None:
    sent = len(desk.session.wire.sources)
    assert delete_acked(desk.session, policy, (desk.topic, 0), "g", []) == []
    assert delete_acked(desk.session, "none", (desk.topic, 0), "g", ["1-1"]) == []
    assert len(desk.session.wire.sources) == sent


@BOTH
def test_the_body_goes_with_the_entry(desk: Desk, policy: Policy) -> None:
    entry, ref = desk.body()
    other, waiting = desk.body()
    desk.group("g")
    desk.read("g")
    assert desk.finish(policy, "g", [entry]) == [entry]
    assert desk.ids() == [other]
    keys = desk.session.keys
    assert desk.call("EXISTS", ref) == 0
    assert desk.call("EXISTS", waiting) == 1
    assert desk.call("SMEMBERS", keys.payload_index(desk.topic)) == [waiting.encode()]
    assert desk.call("ZRANGE", keys.payload_times, 0, -1) == [waiting.encode()]


def test_a_body_lives_until_the_last_group_has_finished(desk: Desk) -> None:
    entry, ref = desk.body()
    for name in ("a", "b"):
        desk.group(name)
        desk.read(name)
    assert desk.finish("all-groups-ack", "a", [entry]) == []
    assert desk.call("EXISTS", ref) == 1
    assert desk.finish("all-groups-ack", "b", [entry]) == [entry]
    assert desk.call("EXISTS", ref) == 0


def test_immediate_leaves_a_body_that_another_group_has_in_hand(desk: Desk) -> None:
    entry, ref = desk.body()
    for name in ("a", "b"):
        desk.group(name)
        desk.read(name)
    assert desk.finish("immediate", "a", [entry]) == [entry]
    assert desk.call("EXISTS", ref) == 1
    assert desk.finish("immediate", "b", [entry]) == [entry]
    desk.session.clock.offset_ms += HOUR + 1000
    keeper = Trimmer(desk.session, Retention(), pytest.fail)
    assert keeper.tick(1.0, [(desk.topic, 0)]) == Trimmed(orphans=1)
    assert desk.call("EXISTS", ref) == 0


@BOTH
def test_a_crash_before_the_removal_leaves_the_entry_to_retention(
    desk: Desk, policy: Policy
) -> None:
    entry, ref = desk.body()
    desk.group("g")
    desk.read("g")
    desk.call("XACK", desk.stream, "g", entry)
    assert desk.ids() == [entry]
    assert desk.call("EXISTS", ref) == 1
    keeper = Trimmer(desk.session, Retention(), pytest.fail)
    assert keeper.tick(1.0, [(desk.topic, 0)]) == Trimmed(bodies=1)
    assert delete_acked(desk.session, policy, (desk.topic, 0), "g", [entry]) == [entry]
    assert desk.call("EXISTS", ref) == 0


@BOTH
def test_a_crash_between_entry_and_body_leaves_an_orphan_and_no_entry(
    desk: Desk, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, ref = desk.body()
    desk.group("g")
    desk.read("g")
    states: list[Any] = []

    def crash(*_: object) -> None:
        states.append((desk.ids(), desk.call("EXISTS", ref)))
        raise KeyboardInterrupt

    monkeypatch.setattr(payloads, "drop", crash)
    with pytest.raises(KeyboardInterrupt):
        desk.finish(policy, "g", [entry])
    assert states == [([], 1)]


def test_a_message_trimmed_meanwhile_is_gone_and_no_error(desk: Desk) -> None:
    (entry,) = desk.add(1)
    desk.group("g")
    desk.read("g")
    desk.call("XTRIM", desk.stream, "MAXLEN", 0)
    assert desk.finish("all-groups-ack", "g", [entry]) == [entry]
    assert desk.ack_sets() == []
