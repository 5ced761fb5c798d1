import pytest

from tests.scripts.conftest import KEYS, TOPIC, Scripts

LEASE, RECORD = KEYS.lease(TOPIC, "g", 0), KEYS.kept(TOPIC, "g", 0)
TTL = 60_000


def keep(
    lua: Scripts, entry: str = "5-1", attempts: int = 1, delay: int = 0, me: str = "me"
) -> int:
    kept: int = lua.run("keep_retry", [LEASE, RECORD], me, entry, attempts, delay, TTL)
    return kept


@pytest.mark.parametrize("delay", [0, 1500, 10**12])
def test_the_record_says_what_is_waited_for_and_how_long(
    lua: Scripts, delay: int
) -> None:
    lua.call("SET", LEASE, "me")
    before = lua.now_ms()

    assert keep(lua, "5-1", 3, delay) == 1

    record, after = lua.hash(RECORD), lua.now_ms()
    assert record.keys() == {b"id", b"attempts", b"first_failed_at_ms", b"due_at_ms"}
    assert (record[b"id"], record[b"attempts"]) == (b"5-1", b"3")
    assert before <= int(record[b"first_failed_at_ms"]) <= after
    assert before + delay <= int(record[b"due_at_ms"]) <= after + delay
    assert 0 < lua.call("PTTL", RECORD) <= TTL


def test_the_first_failure_of_a_message_stays_the_first(lua: Scripts) -> None:
    lua.call("SET", LEASE, "me")
    keep(lua, attempts=1)
    lua.call("HSET", RECORD, "first_failed_at_ms", 7)

    assert keep(lua, attempts=2) == 1

    record = lua.hash(RECORD)
    assert (record[b"first_failed_at_ms"], record[b"attempts"]) == (b"7", b"2")


def test_the_first_failure_of_another_message_is_not_taken_over(lua: Scripts) -> None:
    lua.call("SET", LEASE, "me")
    lua.call("HSET", RECORD, "id", "5-1", "first_failed_at_ms", 7, "stale", "field")
    before = lua.now_ms()

    assert keep(lua, "5-2") == 1

    record = lua.hash(RECORD)
    assert record[b"id"] == b"5-2"
    assert int(record[b"first_failed_at_ms"]) >= before
    assert b"stale" not in record


def test_each_failure_starts_the_life_of_the_record_again(lua: Scripts) -> None:
    lua.call("SET", LEASE, "me")
    keep(lua)
    lua.call("PEXPIRE", RECORD, 100)
    keep(lua, attempts=2)
    assert lua.call("PTTL", RECORD) > 1000


@pytest.mark.parametrize("holder", [None, "other"])
def test_without_the_lease_nothing_is_kept(lua: Scripts, holder: str | None) -> None:
    if holder:
        lua.call("SET", LEASE, holder)
    lua.call("HSET", RECORD, "id", "4-1", "attempts", 9)

    assert keep(lua) == 0

    assert lua.hash(RECORD) == {b"id": b"4-1", b"attempts": b"9"}
    assert lua.call("PTTL", RECORD) == -1
