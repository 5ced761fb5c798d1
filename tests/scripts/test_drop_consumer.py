from tests.scripts.conftest import KEYS, TOPIC, Scripts

STREAM = KEYS.partition(TOPIC, 0)


def names(lua: Scripts) -> list[bytes]:
    return [row[1] for row in lua.call("XINFO", "CONSUMERS", STREAM, "g")]


def test_a_consumer_that_holds_nothing_is_forgotten(lua: Scripts) -> None:
    lua.group(STREAM)
    lua.call("XGROUP", "CREATECONSUMER", STREAM, "g", "me")
    assert lua.run("drop_consumer", [STREAM], "g", "me") == 1
    assert names(lua) == []


def test_a_consumer_keeps_its_name_while_it_holds_an_entry(lua: Scripts) -> None:
    (entry,) = lua.deliver(STREAM, 1)
    assert lua.run("drop_consumer", [STREAM], "g", "me") == 0
    assert lua.pending(STREAM) == [entry]
    assert names(lua) == [b"me"]


def test_what_others_hold_is_theirs(lua: Scripts) -> None:
    (entry,) = lua.deliver(STREAM, 1, "other")
    lua.call("XGROUP", "CREATECONSUMER", STREAM, "g", "me")
    assert lua.run("drop_consumer", [STREAM], "g", "me") == 1
    assert lua.run("drop_consumer", [STREAM], "g", "nobody") == 1
    assert lua.pending(STREAM) == [entry]
    assert names(lua) == [b"other"]
