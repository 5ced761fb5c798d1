from tests.scripts.conftest import KEYS, Scripts

MEMBERS = KEYS.members("g")


def test_a_beat_returns_the_time_and_everybody_with_their_last_sign(
    lua: Scripts,
) -> None:
    first = lua.run("beat_member", [MEMBERS], 5000, "1:s:a")
    now, *rows = lua.run("beat_member", [MEMBERS], 5000, "1:s:b")
    assert rows[::2] == [b"1:s:a", b"1:s:b"]
    assert [int(score) for score in rows[1::2]] == [first[0], now]
    assert abs(now - lua.now_ms()) < 1000


def test_looking_beats_for_nobody(lua: Scripts) -> None:
    assert lua.run("beat_member", [MEMBERS], 5000, "")[1:] == []
    assert lua.call("EXISTS", MEMBERS) == 0


def test_members_silent_for_longer_than_the_ttl_are_forgotten(lua: Scripts) -> None:
    now = lua.now_ms()
    lua.call("ZADD", MEMBERS, now - 60_000, "1:s:old", now - 10_000, "1:s:young")
    assert lua.run("beat_member", [MEMBERS], 30_000, "")[1] == b"1:s:young"
    assert lua.call("ZCARD", MEMBERS) == 1


def test_the_key_goes_by_itself_when_nobody_beats_any_more(lua: Scripts) -> None:
    lua.run("beat_member", [MEMBERS], 5000, "1:s:a")
    assert 0 < lua.call("PTTL", MEMBERS) <= 5000
