from dataclasses import dataclass, field
from typing import Any

import hiredis
import pytest

from tests.scripts.conftest import KEYS, TOPIC, Scripts

STREAM = KEYS.partition(TOPIC, 0)
LEASE = KEYS.lease(TOPIC, "g", 0)
COMMIT, ACKED = KEYS.commit(TOPIC, 0), KEYS.acked(TOPIC, 0)
RETRIES, DLQ = KEYS.retries(TOPIC), KEYS.dlq(TOPIC)
FIELDS = [b"payload", bytes(range(256))]
LONG = 2**63 - 1


@dataclass(frozen=True)
class Settling:
    """One call of the script."""

    acks: list[str] = field(default_factory=list)
    steps: list[tuple[Any, ...]] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    fence: str = "lease"

    def run(self, lua: Scripts) -> Any:
        keys = [STREAM, LEASE, COMMIT, ACKED, RETRIES, DLQ, *self.items]
        args: list[Any] = ["g", "me", self.fence, len(self.acks), *self.acks]
        for kind, entry, deliveries, delay, fields in self.steps:
            args += [kind, entry, deliveries, delay, len(fields), *fields]
        return lua.run("settle", keys, *args)


def step(kind: str, entry: str, **given: Any) -> tuple[Any, ...]:
    fields = [] if kind == "ack" else FIELDS
    return (kind, entry, given.get("deliveries", ""), given.get("delay", 0), fields)


@pytest.fixture(autouse=True)
def _lease(lua: Scripts) -> None:
    lua.call("SET", LEASE, "me")


def frontier(lua: Scripts) -> str | None:
    found = lua.call("HGET", COMMIT, "g")
    return found.decode() if found else None


def bodies(lua: Scripts, stream: str) -> list[list[bytes]]:
    return [flat for _, flat in lua.call("XRANGE", stream, "-", "+")]


def test_plain_acks_are_done_and_raise_the_frontier(lua: Scripts) -> None:
    ids = lua.deliver(STREAM, 3)
    assert Settling(ids).run(lua) == [b"done", ids[-1].encode()]
    assert lua.pending(STREAM) == []
    assert frontier(lua) == ids[-1]
    ms, name = lua.call("HGET", ACKED, "g").split(b" ")
    assert name == b"me"
    assert abs(int(ms) - lua.now_ms()) < 1000


def test_without_the_lease_nothing_is_done(lua: Scripts) -> None:
    ids = lua.deliver(STREAM, 2)
    for holder in ("other", None):
        lua.call("DEL", LEASE)
        if holder:
            lua.call("SET", LEASE, holder)
        assert Settling([ids[0]], [step("dead", ids[1])]).run(lua) == [b"lost"]
    assert lua.pending(STREAM) == ids
    assert lua.call("EXISTS", COMMIT, ACKED, DLQ) == 0


def test_the_entry_fence_needs_no_lease(lua: Scripts) -> None:
    (entry,) = lua.deliver(STREAM, 1)
    lua.call("DEL", LEASE)
    done = Settling(steps=[step("ack", entry)], fence="entry").run(lua)
    assert done == [b"done", entry.encode(), b"done"]
    assert lua.pending(STREAM) == []


def test_each_kind_writes_and_acknowledges(lua: Scripts) -> None:
    ids = lua.deliver(STREAM, 4)
    item = KEYS.retry_item(TOPIC, "1")
    before = lua.now_ms()
    kinds = ["ack", "again", "later", "dead"]
    steps = [step(k, i, delay=5000) for k, i in zip(kinds, ids, strict=True)]
    reply = Settling(steps=steps, items=[item]).run(lua)
    assert reply == [b"done", ids[-1].encode(), *[b"done"] * 4]
    assert lua.pending(STREAM) == []
    assert bodies(lua, STREAM)[4:] == [FIELDS]
    assert bodies(lua, DLQ) == [FIELDS]
    assert lua.hash(item) == {FIELDS[0]: FIELDS[1]}
    due = int(lua.call("ZSCORE", RETRIES, item))
    assert before + 5000 <= due <= lua.now_ms() + 5000


def test_a_repeated_call_does_nothing_twice(lua: Scripts) -> None:
    ids = lua.deliver(STREAM, 4)
    items = [KEYS.retry_item(TOPIC, "1")]
    kinds = ["ack", "again", "later", "dead"]
    settling = Settling(
        steps=[step(k, i) for k, i in zip(kinds, ids, strict=True)], items=items
    )
    settling.run(lua)
    acked = lua.call("HGET", ACKED, "g")
    assert settling.run(lua)[2:] == [b"already"] * 4
    assert len(bodies(lua, STREAM)) == 5
    assert len(bodies(lua, DLQ)) == 1
    assert lua.call("ZCARD", RETRIES) == 1
    assert lua.call("HGET", ACKED, "g") == acked


def test_items_go_to_their_own_steps_also_beside_lost_ones(lua: Scripts) -> None:
    mine = lua.deliver(STREAM, 3)
    lua.call("XCLAIM", STREAM, "g", "other", 0, mine[0])
    items = [KEYS.retry_item(TOPIC, str(n)) for n in range(3)]
    steps = [
        ("later", entry, "", n, [b"payload", b"%d" % n]) for n, entry in enumerate(mine)
    ]
    reply = Settling(steps=steps, items=items).run(lua)
    assert reply[2:] == [b"lost", b"done", b"done"]
    assert lua.hash(items[0]) == {}
    assert lua.hash(items[1]) == {b"payload": b"1"}
    assert lua.hash(items[2]) == {b"payload": b"2"}
    assert lua.pending(STREAM) == mine[:1]


def test_an_entry_of_somebody_else_is_lost(lua: Scripts) -> None:
    (entry,) = lua.deliver(STREAM, 1, "other")
    for kind in ("ack", "again", "dead"):
        assert Settling(steps=[step(kind, entry)]).run(lua)[2:] == [b"lost"]
    assert lua.pending(STREAM) == [entry]
    assert lua.call("EXISTS", DLQ, ACKED) == 0


def test_deliveries_fence_what_was_taken_away_and_came_back(lua: Scripts) -> None:
    (entry,) = lua.deliver(STREAM, 1)
    lua.call("XCLAIM", STREAM, "g", "me", 0, entry)
    assert Settling(steps=[step("ack", entry, deliveries=1)]).run(lua)[2:] == [b"lost"]
    assert Settling(steps=[step("ack", entry, deliveries=2)]).run(lua)[2:] == [b"done"]


def test_an_entry_that_cannot_be_written_stays_pending(lua: Scripts) -> None:
    ids = lua.deliver(STREAM, 2)
    lua.call("SET", DLQ, "no stream")
    settling = Settling(steps=[step("again", ids[0]), step("dead", ids[1])])
    for _ in range(2):
        with pytest.raises(hiredis.ReplyError, match="WRONGTYPE"):
            settling.run(lua)
    assert lua.pending(STREAM) == ids[1:]
    assert len(bodies(lua, STREAM)) == 3


def test_a_group_that_is_gone_is_an_error_and_leaves_no_trace(lua: Scripts) -> None:
    lua.call("XADD", STREAM, "1-1", "n", 1)
    for settling in (Settling(["1-1"]), Settling(steps=[step("dead", "1-1")])):
        with pytest.raises(hiredis.ReplyError, match="NOGROUP"):
            settling.run(lua)
    assert lua.call("EXISTS", COMMIT, ACKED, DLQ) == 0


def test_twenty_thousand_acks_in_one_call(lua: Scripts) -> None:
    lua.group(STREAM)
    add = "for i = 1, 20000 do redis.call('XADD', KEYS[1], '1-' .. i, 'n', i) end"
    lua.call("EVAL", add, 1, STREAM)
    lua.call(
        *("XREADGROUP", "GROUP", "g", "me", "COUNT", 20000, "STREAMS", STREAM, ">")
    )
    ids = [f"1-{n}" for n in range(1, 20001)]
    assert Settling(ids[:-1]).run(lua)[1] == b"1-19999"
    assert Settling(ids).run(lua)[1] == b"1-20000"
    assert lua.pending(STREAM) == []


def test_the_frontier_stops_at_the_first_hole(lua: Scripts) -> None:
    lua.group(STREAM)
    for entry in ("5-1", "5-2", "6-0", "6-1"):
        lua.call("XADD", STREAM, entry, "n", 1)
    lua.call("XREADGROUP", "GROUP", "g", "me", "STREAMS", STREAM, ">")
    found = []
    for entry in ("5-2", "5-1", "6-1", "6-0"):
        Settling([entry]).run(lua)
        found.append(frontier(lua))
    assert found == ["5-0", f"5-{LONG}", f"5-{LONG}", "6-1"]


@pytest.mark.parametrize(
    ("lowest", "just_below"),
    [
        ("0-1", "0-0"),
        ("1-0", f"0-{LONG}"),
        ("1000-0", f"999-{LONG}"),
        ("7-1000", "7-999"),
        (f"7-{2**53 + 2}", f"7-{2**53 + 1}"),
        (f"7-{LONG}", f"7-{LONG - 1}"),
        (f"7-{2**64 - 1}", f"7-{2**64 - 2}"),
        (f"{2**53 + 2}-0", f"{2**53 + 1}-{LONG}"),
        (f"{2**64 - 1}-{2**64 - 1}", f"{2**64 - 1}-{2**64 - 2}"),
    ],
)
def test_the_frontier_is_the_id_just_below_the_lowest_pending_one(
    lua: Scripts, lowest: str, just_below: str
) -> None:
    lua.group(STREAM)
    lua.call("XADD", STREAM, lowest, "n", 1)
    lua.call("XREADGROUP", "GROUP", "g", "me", "STREAMS", STREAM, ">")
    assert Settling(["0-1"] if lowest != "0-1" else []).run(lua)[1].decode() == (
        just_below
    )
    assert frontier(lua) == just_below
    assert Settling([lowest]).run(lua)[1].decode() == lowest
    assert frontier(lua) == lowest


def test_the_frontier_never_falls(lua: Scripts) -> None:
    (entry,) = lua.deliver(STREAM, 1)
    high = f"{2**64 - 1}-7"
    lua.call("HSET", COMMIT, "g", high)
    assert Settling([entry]).run(lua) == [b"done", entry.encode()]
    assert frontier(lua) == high


def test_a_frontier_that_java_wrote_is_replaced_by_plain_text(lua: Scripts) -> None:
    (entry,) = lua.deliver(STREAM, 1)
    lua.call("HSET", COMMIT, "g", b"\x03\x01" + entry.encode())
    Settling([entry]).run(lua)
    assert frontier(lua) == entry


def test_what_another_group_holds_does_not_matter(lua: Scripts) -> None:
    ids = lua.deliver(STREAM, 2)
    lua.call("XGROUP", "CREATE", STREAM, "h", "0")
    lua.call("XREADGROUP", "GROUP", "h", "me", "STREAMS", STREAM, ">")
    Settling(ids).run(lua)
    assert lua.hash(COMMIT) == {b"g": ids[-1].encode()}
    assert lua.call("XPENDING", STREAM, "h")[0] == 2


def test_keys_in_different_slots_are_refused_on_a_cluster(cluster_redis: Any) -> None:
    lua = Scripts(cluster_redis, "#!lua\n")
    keys = [
        KEYS.partition("plain", 0),
        KEYS.lease("plain", "g", 0),
        *(KEYS.commit("plain", 0), KEYS.acked("plain", 0)),
        *(KEYS.retries("plain"), KEYS.dlq("plain")),
    ]
    with pytest.raises(hiredis.ReplyError, match="same slot"):
        lua.run("settle", keys, "g", "me", "entry", 0)
