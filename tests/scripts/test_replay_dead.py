import hiredis
import pytest

from tests.scripts.conftest import KEYS, TOPIC, Scripts

DLQ, STREAM = KEYS.dlq(TOPIC), KEYS.partition(TOPIC, 2)
REPLAYED = KEYS.replayed(TOPIC)
WHERE = [DLQ, STREAM, REPLAYED]
FIELDS = [b"payload", bytes(range(256))]


@pytest.fixture
def dead(lua: Scripts) -> str:
    found: bytes = lua.call("XADD", DLQ, "*", "payload", "p")
    return found.decode()


def entries(lua: Scripts, stream: str) -> dict[bytes, list[bytes]]:
    return dict(lua.call("XRANGE", stream, "-", "+"))


def test_a_replay_copies_and_remembers(lua: Scripts, dead: str) -> None:
    new = lua.run("replay_dead", WHERE, dead, "keep", "", *FIELDS)
    assert entries(lua, STREAM) == {new: FIELDS}
    assert dead.encode() in entries(lua, DLQ)
    count, ms = lua.call("HGET", REPLAYED, dead).decode().split(":")
    assert count == "1"
    assert abs(int(ms) - lua.now_ms()) < 1000


def test_a_second_replay_counts_on(lua: Scripts, dead: str) -> None:
    lua.run("replay_dead", WHERE, dead, "keep", "", *FIELDS)
    history = lua.call("HGET", REPLAYED, dead)
    lua.run("replay_dead", WHERE, dead, "keep", history, *FIELDS)
    assert lua.call("HGET", REPLAYED, dead).startswith(b"2:")
    assert len(entries(lua, STREAM)) == 2


def test_of_two_replays_at_once_one_is_told(lua: Scripts, dead: str) -> None:
    lua.run("replay_dead", WHERE, dead, "keep", "", *FIELDS)
    assert lua.run("replay_dead", WHERE, dead, "keep", "", *FIELDS) == b"changed"
    assert len(entries(lua, STREAM)) == 1


def test_a_replay_that_deletes_leaves_nothing_behind(lua: Scripts, dead: str) -> None:
    lua.call("HSET", REPLAYED, dead, "4:1", "9-9", "1:1")
    lua.run("replay_dead", WHERE, dead, "delete", "4:1", *FIELDS)
    assert entries(lua, DLQ) == {}
    assert lua.hash(REPLAYED) == {b"9-9": b"1:1"}
    assert lua.run("replay_dead", WHERE, dead, "delete", "", *FIELDS) == b"gone"
    assert len(entries(lua, STREAM)) == 1


def test_a_dead_letter_that_cannot_be_copied_stays(lua: Scripts, dead: str) -> None:
    lua.call("SET", STREAM, "no stream")
    with pytest.raises(hiredis.ReplyError, match="WRONGTYPE"):
        lua.run("replay_dead", WHERE, dead, "delete", "", *FIELDS)
    assert dead.encode() in entries(lua, DLQ)
    assert lua.call("EXISTS", REPLAYED) == 0
