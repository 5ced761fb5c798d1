from collections.abc import Iterator

import pytest

from mqctl.core.assignment import Member
from mqctl.engine.membership import Membership
from mqctl.engine.session import Session
from tests.support.server import Server
from tests.support.sessions import session
from tests.support.wait import wait_until

KEY = "streaming:mq:members:g"
SLOT = ("t", 0)


@pytest.fixture
def opened(redis: Server) -> Iterator[Session]:
    with session(redis) as found:
        yield found


def member(session: Session, name: str, ttl_ms: int = 60_000) -> Membership:
    return Membership(session, "g", Member(name, "aaaaaaaa", 1), ttl_ms, ttl_ms)


def test_members_see_one_another_while_they_beat(opened: Session) -> None:
    a, b = member(opened, "a"), member(opened, "b")
    a.look([])
    members, _ = b.look([])
    assert {m.consumer for m in members} == {"a", "b"}


def test_who_only_looks_is_not_seen(redis: Server, opened: Session) -> None:
    assert member(opened, "a").look([], beat=False) == ([], {})
    assert redis.call("EXISTS", KEY) == 0


def test_who_has_not_beaten_for_the_time_to_live_is_gone(opened: Session) -> None:
    a, b = member(opened, "a", 50), member(opened, "b", 50)
    a.look([])
    wait_until(lambda: len(b.look([])[0]) == 1, "a is gone", timeout=2)


def test_the_presence_key_goes_by_itself(redis: Server, opened: Session) -> None:
    member(opened, "a").look([])
    assert 0 < redis.call("PTTL", KEY) <= 60_000


def test_a_name_is_claimed_once(opened: Session) -> None:
    assert member(opened, "a").claim()
    assert not member(opened, "a").claim()
    assert member(opened, "b").claim()


def test_an_evicted_name_may_be_claimed_but_not_one_that_has_beaten_since(
    opened: Session,
) -> None:
    a = member(opened, "a")
    a.claim()
    seen = a.last_beat()
    assert seen is not None
    a.evict(seen - 1)
    assert a.last_beat() == seen
    a.evict(seen)
    assert a.last_beat() is None
    assert a.claim()


def test_a_retired_member_is_in_no_share_but_its_name_is_in_use(
    opened: Session,
) -> None:
    a, b = member(opened, "a"), member(opened, "b")
    a.look([])
    a.retire()
    a.look([])
    members, _ = b.look([])
    assert {(m.consumer, m.subscription) for m in members} == {
        ("a", "-"),
        ("b", "aaaaaaaa"),
    }
    assert not Membership(opened, "g", Member("a", "-", 0), 60_000, 60_000).claim()
    a.leave()
    assert a.last_beat() is None


def test_a_lease_has_one_holder_and_its_own_name_is_no_obstacle(
    redis: Server, opened: Session
) -> None:
    a, b = member(opened, "a"), member(opened, "b")
    assert a.acquire([SLOT]) == [SLOT]
    assert b.acquire([SLOT]) == []
    redis.call("PEXPIRE", a.lease(SLOT), 5000)
    assert a.acquire([SLOT]) == [SLOT]
    assert redis.call("PTTL", a.lease(SLOT)) > 50_000


def test_only_the_holder_renews_hands_over_and_drops(
    redis: Server, opened: Session
) -> None:
    a, b = member(opened, "a"), member(opened, "b")
    a.acquire([SLOT])
    assert b.renew([SLOT]) == []
    b.give({SLOT: "b"})
    b.give({SLOT: None})
    assert redis.call("GET", a.lease(SLOT)) == b"a"
    a.give({SLOT: "b"})
    assert redis.call("GET", a.lease(SLOT)) == b"b"
    assert redis.call("PTTL", a.lease(SLOT)) > 50_000
    assert a.renew([SLOT]) == []
    b.give({SLOT: None})
    assert redis.call("EXISTS", a.lease(SLOT)) == 0


def test_the_holders_are_told_for_each_slot(redis: Server, opened: Session) -> None:
    a = member(opened, "a")
    a.acquire([SLOT])
    redis.call("SET", a.lease(("t", 2)), b"\xff")
    _, holders = a.look([SLOT, ("t", 1), ("t", 2)])
    assert holders == {SLOT: "a", ("t", 1): None, ("t", 2): "\udcff"}


def test_a_beat_and_a_renewal_work_at_the_memory_limit(
    redis: Server, opened: Session
) -> None:
    a = member(opened, "a")
    a.look([])
    a.acquire([SLOT])
    before = a.beaten_ms
    redis.call("CONFIG", "SET", "maxmemory", 1)
    try:
        wait_until(lambda: a.look([]) and a.beaten_ms > before, "a beat")
        assert a.last_beat() == a.beaten_ms
        assert a.renew([SLOT]) == [SLOT]
    finally:
        redis.call("CONFIG", "SET", "maxmemory", 0)
