import pytest

from tests.scripts.conftest import KEYS, TOPIC, Scripts

RETRIES, ITEM = KEYS.retries(TOPIC), KEYS.retry_item(TOPIC, "1")
ONCE = f"streaming:mq:dedupe:{TOPIC}:key"
FIELDS = [b"payload", bytes(range(256))]


def delay(
    lua: Scripts, after: object, due: object = "", *, ttl: object = ""
) -> list[object]:
    keys = [ITEM, RETRIES] + ([ONCE] if ttl else [])
    found: list[object] = lua.run(
        "delay_message", keys, after, due, ttl, "retry:1", *FIELDS
    )
    return found


@pytest.mark.parametrize("after", [0, 1500, 10**12])
def test_a_delay_counts_from_now_by_the_servers_clock(lua: Scripts, after: int) -> None:
    before = lua.now_ms()
    stored, due = delay(lua, after)
    assert stored == 1
    assert isinstance(due, int)
    assert before + after <= due <= lua.now_ms() + after
    assert int(lua.call("ZSCORE", RETRIES, ITEM)) == due
    assert lua.call("HGETALL", ITEM) == FIELDS


def test_a_due_time_is_taken_as_it_is(lua: Scripts) -> None:
    assert delay(lua, "", 4_102_444_800_123) == [1, 4_102_444_800_123]
    assert lua.call("ZSCORE", RETRIES, ITEM) == b"4102444800123"


def test_a_message_known_by_its_key_is_not_stored_again(lua: Scripts) -> None:
    assert delay(lua, 1000, ttl=60_000)[0] == 1
    lua.call("DEL", ITEM, RETRIES)
    assert delay(lua, 1000, ttl=60_000) == [0, b"retry:1"]
    assert lua.call("EXISTS", ITEM, RETRIES) == 0
    assert 0 < lua.call("PTTL", ONCE) <= 60_000


def test_without_a_key_nothing_is_remembered(lua: Scripts) -> None:
    delay(lua, 1000)
    assert delay(lua, 1000)[0] == 1
    assert lua.call("EXISTS", ONCE) == 0


def test_an_item_that_gets_no_due_time_is_not_remembered(lua: Scripts) -> None:
    lua.call("SET", RETRIES, "no set")
    with pytest.raises(Exception, match="WRONGTYPE"):
        delay(lua, 1000, ttl=60_000)
    assert lua.call("EXISTS", ONCE) == 0
