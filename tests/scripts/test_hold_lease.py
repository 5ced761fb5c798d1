from tests.scripts.conftest import KEYS, TOPIC, Scripts

LEASE = KEYS.lease(TOPIC, "g", 0)


def test_my_lease_is_renewed(lua: Scripts) -> None:
    lua.call("SET", LEASE, "me", "PX", 100)
    assert lua.run("hold_lease", [LEASE], "me", "me", 60_000) == 1
    assert lua.call("GET", LEASE) == b"me"
    assert lua.call("PTTL", LEASE) > 1000


def test_my_lease_is_handed_over_and_never_free(lua: Scripts) -> None:
    lua.call("SET", LEASE, "me", "PX", 60_000)
    assert lua.run("hold_lease", [LEASE], "me", "newcomer", 60_000) == 1
    assert lua.call("GET", LEASE) == b"newcomer"
    assert lua.run("hold_lease", [LEASE], "me", "me", 60_000) == 0
    assert lua.call("GET", LEASE) == b"newcomer"


def test_my_lease_is_dropped(lua: Scripts) -> None:
    lua.call("SET", LEASE, "me")
    assert lua.run("hold_lease", [LEASE], "me", "", 60_000) == 1
    assert lua.call("EXISTS", LEASE) == 0


def test_a_lease_that_ran_out_or_is_somebody_elses_is_left_alone(lua: Scripts) -> None:
    assert lua.run("hold_lease", [LEASE], "me", "me", 60_000) == 0
    assert lua.call("EXISTS", LEASE) == 0
    lua.call("SET", LEASE, "other", "PX", 60_000)
    for holder in ("me", "third", ""):
        assert lua.run("hold_lease", [LEASE], "me", holder, 1) == 0
    assert lua.call("GET", LEASE) == b"other"
    assert lua.call("PTTL", LEASE) > 1000
