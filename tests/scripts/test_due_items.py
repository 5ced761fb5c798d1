from tests.scripts.conftest import KEYS, TOPIC, Scripts

RETRIES = KEYS.retries(TOPIC)


def fill(lua: Scripts, **delays: int) -> int:
    now = lua.now_ms()
    for item, delay in delays.items():
        lua.call("ZADD", RETRIES, now + delay, item)
    return now


def test_what_is_due_is_listed_by_due_time_and_the_next_is_named(lua: Scripts) -> None:
    now = fill(lua, b=-10, a=-20, later=60_000, last=90_000)
    told, following, *due = lua.run("due_items", [RETRIES], 10, 0)
    assert due == [b"a", b"b"]
    assert told >= now
    assert int(following) == now + 60_000
    assert lua.call("ZRANGE", RETRIES, 0, -1) == [b"a", b"b", b"later", b"last"]


def test_nothing_waits(lua: Scripts) -> None:
    assert lua.run("due_items", [RETRIES], 10, 0)[1:] == [b""]


def test_no_more_than_the_limit(lua: Scripts) -> None:
    fill(lua, a=-3, b=-2, c=-1)
    assert lua.run("due_items", [RETRIES], 2, 0)[1:] == [b"", b"a", b"b"]


def test_items_that_are_held_are_not_listed_to_anybody_else(lua: Scripts) -> None:
    now = fill(lua, a=-3, b=-2, c=-1)
    assert lua.run("due_items", [RETRIES], 2, 30_000)[2:] == [b"a", b"b"]
    _, following, *due = lua.run("due_items", [RETRIES], 2, 30_000)
    assert due == [b"c"]
    assert int(following) >= now + 30_000
    assert lua.run("due_items", [RETRIES], 2, 30_000)[2:] == []
