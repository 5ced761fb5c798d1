import pytest

from tests.scripts.conftest import KEYS, TOPIC, Scripts

RETRIES = KEYS.retries(TOPIC)
ITEM = KEYS.retry_item(TOPIC, "1")


@pytest.mark.parametrize("delay", [0, 1500, 10**12])
def test_an_item_is_due_after_its_delay_by_the_servers_clock(
    lua: Scripts, delay: int
) -> None:
    before = lua.now_ms()
    due = lua.run("schedule_item", [RETRIES], ITEM, delay)
    assert before + delay <= due <= lua.now_ms() + delay
    assert int(lua.call("ZSCORE", RETRIES, ITEM)) == due


def test_an_item_that_waits_already_gets_a_new_due_time(lua: Scripts) -> None:
    first = lua.run("schedule_item", [RETRIES], ITEM, 0)
    assert lua.run("schedule_item", [RETRIES], ITEM, 9000) >= first + 9000
    assert lua.call("ZCARD", RETRIES) == 1
