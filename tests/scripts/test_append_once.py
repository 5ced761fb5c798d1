import pytest

from tests.scripts.conftest import KEYS, TOPIC, Scripts

STREAM = KEYS.partition(TOPIC, 3)
ONCE = f"streaming:mq:dedupe:{TOPIC}:key"
FIELDS = [b"payload", bytes(range(256))]


def append(lua: Scripts, *bound: str, ttl: int = 60_000) -> list[object]:
    found: list[object] = lua.run(
        "append_once", [ONCE, STREAM], ttl, 3, len(bound), *bound, *FIELDS
    )
    return found


def test_the_first_is_stored_and_remembered_with_its_partition(lua: Scripts) -> None:
    stored, entry = append(lua)
    assert stored == 1
    assert lua.call("XRANGE", STREAM, "-", "+") == [[entry, FIELDS]]
    assert lua.call("GET", ONCE) == b"3:%b" % entry


def test_a_second_is_not_stored_and_told_the_first(lua: Scripts) -> None:
    _, entry = append(lua)
    assert append(lua) == [0, b"3:%b" % entry]
    assert lua.call("XLEN", STREAM) == 1


def test_the_ttl_counts_from_the_first_store(lua: Scripts) -> None:
    append(lua, ttl=60_000)
    lua.call("PEXPIRE", ONCE, 5000)
    append(lua, ttl=60_000)
    assert 0 < lua.call("PTTL", ONCE) <= 5000


@pytest.mark.parametrize("bound", [("MAXLEN", "=", "2"), ("MAXLEN", "~", "2")])
def test_the_length_bound_is_applied(lua: Scripts, bound: tuple[str, ...]) -> None:
    for _ in range(3):
        lua.call("XADD", STREAM, "*", "n", 1)
    assert append(lua, *bound)[0] == 1
    assert lua.call("XLEN", STREAM) == (2 if bound[1] == "=" else 4)


def test_what_cannot_be_stored_is_not_remembered(lua: Scripts) -> None:
    lua.call("SET", STREAM, "no stream")
    with pytest.raises(Exception, match="WRONGTYPE"):
        append(lua)
    assert lua.call("EXISTS", ONCE) == 0
