from typing import Any

import hiredis
import pytest

from tests.scripts.conftest import KEYS, TOPIC, Scripts

STREAM = KEYS.partition(TOPIC, 0)
TTL = 5000
ASIDE = ["payload", "", "headers", '{"x-payload-hash-ref":"r"}']
BOTH = pytest.mark.parametrize("policy", ["immediate", "all-groups-ack"])


def sets(ids: list[str]) -> list[str]:
    return [KEYS.acks(TOPIC, 0, i) for i in ids]


def delete(
    lua: Scripts, policy: str, ids: list[str], *, group: str = "g", counted: bool = True
) -> Any:
    keys = [STREAM, *(sets(ids) if counted and policy == "all-groups-ack" else [])]
    return lua.run("ack_delete", keys, policy, group, TTL, *ids)


def left(lua: Scripts) -> list[str]:
    return [entry.decode() for entry, _ in lua.call("XRANGE", STREAM, "-", "+")]


def raw(ids: list[str]) -> list[bytes]:
    return [i.encode() for i in ids]


def give(lua: Scripts, group: str, upto: str = "0") -> None:
    """Let another group read everything above `upto`."""
    lua.call("XGROUP", "CREATE", STREAM, group, upto)
    lua.call("XREADGROUP", "GROUP", group, "me", "STREAMS", STREAM, ">")


def ack(lua: Scripts, group: str, ids: list[str]) -> None:
    lua.call("XACK", STREAM, group, *ids)


@BOTH
def test_the_only_group_removes_what_it_has_acknowledged(
    lua: Scripts, policy: str
) -> None:
    ids = lua.deliver(STREAM, 4)
    ack(lua, "g", ids[1:3])
    assert delete(lua, policy, ids[1:3]) == [raw(ids[1:3]), []]
    assert left(lua) == [ids[0], ids[3]]
    assert lua.call("EXISTS", *sets(ids)) == 0


def test_immediate_removes_for_groups_that_have_not_read(lua: Scripts) -> None:
    ids = lua.deliver(STREAM, 2)
    lua.call("XGROUP", "CREATE", STREAM, "h", "0")
    ack(lua, "g", ids)
    assert delete(lua, "immediate", ids) == [raw(ids), []]
    assert left(lua) == []


def test_all_groups_waits_for_the_last_one(lua: Scripts) -> None:
    ids = lua.deliver(STREAM, 2)
    give(lua, "h")
    ack(lua, "g", ids)
    assert delete(lua, "all-groups-ack", ids) == [[], []]
    assert left(lua) == ids
    for key in sets(ids):
        assert lua.call("SMEMBERS", key) == [b"g"]
        assert 0 < lua.call("PTTL", key) <= TTL
    ack(lua, "h", ids[:1])
    assert delete(lua, "all-groups-ack", ids[:1], group="h") == [raw(ids[:1]), []]
    assert left(lua) == ids[1:]
    assert lua.call("EXISTS", *sets(ids)) == 1


def test_a_group_that_has_not_started_counts(lua: Scripts) -> None:
    ids = lua.deliver(STREAM, 1)
    lua.call("XGROUP", "CREATE", STREAM, "new", "0")
    ack(lua, "g", ids)
    assert delete(lua, "all-groups-ack", ids) == [[], []]
    assert left(lua) == ids


def test_a_group_that_begins_behind_an_entry_does_not_need_it(lua: Scripts) -> None:
    ids = lua.deliver(STREAM, 1)
    lua.call("XGROUP", "CREATE", STREAM, "late", "$")
    ack(lua, "g", ids)
    assert delete(lua, "all-groups-ack", ids) == [raw(ids), []]


def test_old_members_of_an_ack_set_do_not_count(lua: Scripts) -> None:
    """One group is gone, one was reset to read again: both stand in the set."""
    ids = lua.deliver(STREAM, 1)
    give(lua, "again")
    ack(lua, "again", ids)
    lua.call("XGROUP", "SETID", STREAM, "again", "0")
    lua.call("SADD", sets(ids)[0], "again", "gone")
    ack(lua, "g", ids)
    assert delete(lua, "all-groups-ack", ids) == [[], []]
    assert left(lua) == ids


def test_what_is_pending_elsewhere_is_not_finished(lua: Scripts) -> None:
    ids = lua.deliver(STREAM, 3)
    give(lua, "h")
    ack(lua, "h", [ids[0], ids[2]])
    ack(lua, "g", ids)
    assert delete(lua, "all-groups-ack", ids) == [raw([ids[0], ids[2]]), []]
    assert left(lua) == [ids[1]]


@BOTH
def test_a_repeated_call_does_nothing_twice(lua: Scripts, policy: str) -> None:
    ids = lua.deliver(STREAM, 2)
    ack(lua, "g", ids)
    first = delete(lua, policy, ids)
    assert delete(lua, policy, ids) == first
    assert lua.call("EXISTS", *sets(ids)) == 0


@BOTH
def test_ids_of_a_stream_that_is_gone_are_gone(lua: Scripts, policy: str) -> None:
    lua.call("SADD", sets(["1-1"])[0], "g")
    assert delete(lua, policy, ["1-1"]) == [[b"1-1"], []]
    if policy == "all-groups-ack":
        assert lua.call("EXISTS", *sets(["1-1"])) == 0


def test_without_any_group_only_immediate_removes(lua: Scripts) -> None:
    lua.call("XADD", STREAM, "1-1", "n", 1)
    assert delete(lua, "all-groups-ack", ["1-1"]) == [[], []]
    assert delete(lua, "immediate", ["1-1"]) == [[b"1-1"], []]


def test_without_ack_sets_the_same_entries_go(lua: Scripts) -> None:
    ids = lua.deliver(STREAM, 2)
    give(lua, "h")
    ack(lua, "g", ids)
    ack(lua, "h", ids[:1])
    reply = delete(lua, "all-groups-ack", ids, counted=False)
    assert reply == [raw(ids[:1]), []]
    assert lua.call("EXISTS", *sets(ids)) == 0


@BOTH
def test_entries_that_refer_to_bodies_are_told(lua: Scripts, policy: str) -> None:
    lua.call("XADD", STREAM, "1-1", *ASIDE)
    lua.call("XADD", STREAM, "1-2", "n", 1)
    lua.group(STREAM)
    lua.call("XGROUP", "SETID", STREAM, "g", "$")
    found = [[b"1-1", [field.encode() for field in ASIDE]]]
    assert delete(lua, policy, ["1-1", "1-2"]) == [[b"1-1", b"1-2"], found]


def test_a_body_in_somebody_s_hands_is_not_told(lua: Scripts) -> None:
    lua.call("XADD", STREAM, "1-1", *ASIDE)
    lua.group(STREAM)
    lua.call("XGROUP", "SETID", STREAM, "g", "$")
    give(lua, "h")
    assert delete(lua, "immediate", ["1-1"]) == [[b"1-1"], []]


@pytest.mark.parametrize(("delivered", "goes"), [(2**53, False), (2**53 + 1, True)])
def test_ids_are_compared_exactly(lua: Scripts, delivered: int, goes: bool) -> None:
    entry = f"7-{2**53 + 1}"
    lua.call("XADD", STREAM, entry, "n", 1)
    lua.call("XGROUP", "CREATE", STREAM, "g", f"7-{delivered}")
    gone, _ = delete(lua, "all-groups-ack", [entry])
    assert bool(gone) == goes


def test_ack_sets_in_other_slots_are_refused_on_a_cluster(cluster_redis: Any) -> None:
    lua = Scripts(cluster_redis, "#!lua\n")
    keys = [KEYS.partition("plain", 0), KEYS.acks("plain", 0, "1-1")]
    with pytest.raises(hiredis.ReplyError, match="same slot"):
        lua.run("ack_delete", keys, "all-groups-ack", "g", TTL, "1-1")
