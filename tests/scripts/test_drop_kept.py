from tests.scripts.conftest import KEYS, TOPIC, Scripts

RECORD = KEYS.kept(TOPIC, "g", 0)


def test_the_record_of_a_settled_message_is_forgotten(lua: Scripts) -> None:
    lua.call("HSET", RECORD, "id", "5-1", "attempts", 2)
    assert lua.run("drop_kept", [RECORD], "5-1") == 1
    assert lua.call("EXISTS", RECORD) == 0


def test_another_messages_record_stays(lua: Scripts) -> None:
    lua.call("HSET", RECORD, "id", "5-10", "attempts", 2)
    assert lua.run("drop_kept", [RECORD], "5-1") == 0
    assert lua.hash(RECORD) == {b"id": b"5-10", b"attempts": b"2"}


def test_there_may_be_no_record(lua: Scripts) -> None:
    assert lua.run("drop_kept", [RECORD], "5-1") == 0
    assert lua.call("EXISTS", RECORD) == 0
