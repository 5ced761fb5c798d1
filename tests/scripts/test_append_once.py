from tests.scripts.conftest import KEYS, TOPIC, Scripts

STREAM = KEYS.partition(TOPIC, 0)
DEDUPE = KEYS.dedupe(TOPIC, 0, "abc")


def once(lua: Scripts, *fields: str, bound: tuple[str, ...] = ()) -> list[object]:
    found: list[object] = lua.run(
        "append_once", [DEDUPE, STREAM], 60_000, 0, len(bound), *bound, *fields
    )
    return found


def test_the_first_is_stored_and_remembered(lua: Scripts) -> None:
    stored, entry_id = once(lua, "payload", "x")

    assert stored == 1
    assert lua.call("XRANGE", STREAM, "-", "+") == [[entry_id, [b"payload", b"x"]]]
    assert isinstance(entry_id, bytes)
    assert lua.call("GET", DEDUPE) == b"0:" + entry_id
    assert 0 < lua.call("PTTL", DEDUPE) <= 60_000


def test_the_second_is_told_of_the_first_and_does_not_prolong_it(lua: Scripts) -> None:
    _, entry_id = once(lua, "payload", "x")
    lua.call("PEXPIRE", DEDUPE, 5_000)

    assert once(lua, "payload", "y") == [0, b"0:" + bytes(str(entry_id)[2:-1], "ascii")]
    assert lua.call("XLEN", STREAM) == 1
    assert lua.call("PTTL", DEDUPE) <= 5_000


def test_a_length_bound_cuts_as_asked(lua: Scripts) -> None:
    for n in range(3):
        lua.call("DEL", DEDUPE)
        once(lua, "payload", str(n), bound=("MAXLEN", "=", "2"))

    assert lua.call("XLEN", STREAM) == 2
