import hiredis
import pytest

from tests.scripts.conftest import KEYS, TOPIC, Scripts

RETRIES, STREAM = KEYS.retries(TOPIC), KEYS.partition(TOPIC, 0)
ITEM = KEYS.retry_item(TOPIC, "1")
WHERE = [RETRIES, ITEM, STREAM]
FIELDS = [b"payload", bytes(range(256)), b"headers", b"{}"]


@pytest.fixture(autouse=True)
def _item(lua: Scripts) -> None:
    lua.call("HSET", ITEM, "payload", "p")
    lua.call("ZADD", RETRIES, 1, ITEM)


def test_an_item_is_moved_once_with_its_bytes(lua: Scripts) -> None:
    assert lua.run("move_item", WHERE, *FIELDS) == 1
    assert lua.run("move_item", WHERE, *FIELDS) == 0
    ((_, flat),) = lua.call("XRANGE", STREAM, "-", "+")
    assert flat == FIELDS
    assert lua.call("EXISTS", ITEM, RETRIES) == 0


def test_other_items_stay(lua: Scripts) -> None:
    other = KEYS.retry_item(TOPIC, "2")
    lua.call("ZADD", RETRIES, 2, other)
    lua.run("move_item", WHERE, *FIELDS)
    assert lua.call("ZRANGE", RETRIES, 0, -1) == [other.encode()]


def test_an_item_whose_partition_takes_nothing_stays_where_it_is(lua: Scripts) -> None:
    lua.call("SET", STREAM, "no stream")
    with pytest.raises(hiredis.ReplyError, match="WRONGTYPE"):
        lua.run("move_item", WHERE, *FIELDS)
    assert lua.call("ZSCORE", RETRIES, ITEM) == b"1"
    assert lua.hash(ITEM) == {b"payload": b"p"}
