from typing import Any

from tests.scripts.conftest import KEYS, TOPIC, Scripts

ITEM = KEYS.retry_item(TOPIC, "u1")
RETRIES = KEYS.retries(TOPIC)
DEDUPE = "d{orders}"


def delayed(lua: Scripts, *, delay: Any = "", due: Any = "", ttl: Any = "") -> Any:
    keys = [ITEM, RETRIES, *([DEDUPE] if ttl else [])]
    return lua.run("delay_message", keys, delay, due, ttl, "retry:u1", "payload", "x")


def test_a_delay_counts_from_the_servers_clock(lua: Scripts) -> None:
    before = lua.now_ms()

    stored, due = delayed(lua, delay=5_000)

    assert stored == 1
    assert before + 5_000 <= due <= lua.now_ms() + 5_000
    assert lua.call("ZRANGE", RETRIES, 0, -1) == [ITEM.encode()]
    assert int(lua.call("ZSCORE", RETRIES, ITEM)) == due
    assert lua.hash(ITEM) == {b"payload": b"x"}


def test_a_due_time_is_taken_as_it_is(lua: Scripts) -> None:
    assert delayed(lua, due=1_900_000_000_000) == [1, 1_900_000_000_000]


def test_a_known_dedupe_key_stores_nothing(lua: Scripts) -> None:
    delayed(lua, delay=1, ttl=60_000)
    lua.call("DEL", ITEM, RETRIES)

    assert delayed(lua, delay=1, ttl=60_000) == [0, b"retry:u1"]
    assert not lua.call("EXISTS", ITEM)
    assert not lua.call("EXISTS", RETRIES)
