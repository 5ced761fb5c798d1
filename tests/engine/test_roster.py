from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from mqctl.core.errors import BadUsage, NameInUse, NotFound, WrongType
from mqctl.core.options import ConsumerOptions
from mqctl.engine.groups import GroupDeleted
from mqctl.engine.roster import Roster
from tests.support.server import Server
from tests.support.sessions import QUICK, add, session, topic
from tests.support.wait import wait_until
from tests.support.worker import lease, owners, stream

NOTES: list[str] = []


@pytest.fixture
def roster(redis: Server) -> Iterator[Callable[..., Roster]]:
    """Makes rosters of group g, each on a connection of its own."""
    with ExitStack() as stack:

        def make(name: str = "a", **options: object) -> Roster:
            settings = ConsumerOptions(("t",), "g", **{**QUICK, **options})  # type: ignore[arg-type]
            opened = stack.enter_context(session(redis))
            return Roster(opened, settings, name, NOTES.append)

        NOTES.clear()
        yield make


def begins(server: Server, partition: int = 0) -> str:
    """Return the id after which group g reads on."""
    (row,) = server.call("XINFO", "GROUPS", stream("t", partition))
    return str(
        dict(zip(row[::2], row[1::2], strict=True))[b"last-delivered-id"].decode()
    )


# -- joining ------------------------------------------------------------------


def test_it_makes_the_group_everywhere_and_takes_what_is_free(
    redis: Server, roster: Callable[..., Roster]
) -> None:
    topic(redis, partitions=3)
    redis.call("SET", lease("t", 1), "java", "PX", 60_000)
    one = roster()
    one.join()
    assert sorted(one.parts) == [("t", 0), ("t", 2)]
    assert owners(redis, "t", 3) == ["a", "java", "a"]
    assert [begins(redis, i) for i in range(3)] == ["0-0"] * 3
    assert one.strangers == {"t"}


def test_the_newest_n_begin_behind_everything_older(
    redis: Server, roster: Callable[..., Roster]
) -> None:
    topic(redis, partitions=3)
    for i in range(1, 9):
        redis.call("XADD", stream("t", i % 2), f"{i}-0", "payload", str(i))
    roster(position="last:3").join()
    assert begins(redis, 0) == "5-18446744073709551615"
    assert begins(redis, 1) == "6-18446744073709551615"
    assert begins(redis, 2) == "0-0"


def test_a_partition_without_any_of_the_newest_begins_behind_its_last(
    redis: Server, roster: Callable[..., Roster]
) -> None:
    topic(redis, partitions=2)
    redis.call("XADD", stream("t", 0), "1-5", "payload", "old")
    redis.call("XADD", stream("t", 1), "2-0", "payload", "new")
    roster(position="last:1").join()
    assert begins(redis, 0) == "1-5"


def test_a_lost_group_goes_on_at_what_it_had_finished(
    redis: Server, roster: Callable[..., Roster]
) -> None:
    topic(redis)
    redis.call("HSET", "streaming:mq:commit:t:p:0", "g", "7-0")
    redis.call("XADD", stream("t", 0), "9-0", "payload", "x")
    roster().join()
    assert begins(redis) == "7-0"


def test_a_partition_out_of_range_is_refused(
    redis: Server, roster: Callable[..., Roster]
) -> None:
    topic(redis, partitions=2)
    with pytest.raises(BadUsage, match="out of range"):
        roster(partitions=(2,)).join()


def test_a_key_that_is_no_stream_is_named_and_no_lease_stays(
    redis: Server, roster: Callable[..., Roster]
) -> None:
    topic(redis)
    redis.call("SET", stream("t", 0), "x")
    with pytest.raises(WrongType, match=stream("t", 0)):
        roster().join()
    assert owners(redis, "t", 1) == [None]


def test_a_missing_topic_is_an_error_only_when_it_is_to_end(
    roster: Callable[..., Roster],
) -> None:
    with pytest.raises(NotFound):
        roster(exit_when_empty=True).join()
    one = roster()
    one.join()
    assert not one.parts
    assert NOTES == ["topic t does not exist yet; waiting for it"]


def test_a_living_name_is_refused_and_left_alone(
    redis: Server, roster: Callable[..., Roster]
) -> None:
    topic(redis)
    first, second = roster(consumer="a"), roster(consumer="a", lease_ttl_ms=60_000)
    first.join()
    beats = iter(range(1000))

    def beat_meanwhile(*_: object) -> None:
        first.pulse(1e9 + next(beats))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mqctl.engine.roster.select.select", beat_meanwhile)
        with pytest.raises(NameInUse):
            second.join()
    second.leave()
    assert owners(redis, "t", 1) == ["a"]
    assert redis.call("ZCARD", "streaming:mq:members:g") == 1


# -- keeping and losing -------------------------------------------------------


def test_a_lease_deleted_by_hand_is_taken_again_with_all_that_is_in_hand(
    redis: Server, roster: Callable[..., Roster]
) -> None:
    topic(redis)
    one = roster()
    one.join()
    (part,) = one.parts.values()
    part.acks.append("1-0")
    redis.call("DEL", lease("t", 0))
    assert one.renew([part])
    assert list(one.parts.values()) == [part]
    assert owners(redis, "t", 1) == ["a"]
    assert one.repeated == 0


def test_a_lease_that_another_has_is_dropped_and_what_was_in_hand_is_counted(
    redis: Server, roster: Callable[..., Roster]
) -> None:
    topic(redis)
    one = roster()
    one.join()
    (part,) = one.parts.values()
    part.acks.append("1-0")
    redis.call("SET", lease("t", 0), "b")
    assert not one.renew([part])
    assert not one.parts
    assert one.repeated == 1
    assert not one.sure(part)
    assert "1 messages in hand may be repeated" in NOTES[-1]


def test_a_lease_that_may_have_run_out_is_looked_at_before_anything_is_written(
    redis: Server, roster: Callable[..., Roster]
) -> None:
    topic(redis)
    one = roster()
    one.join()
    (part,) = one.parts.values()
    redis.call("SET", lease("t", 0), "b")
    assert one.sure(part)  # by the clock it is fresh
    part.held_at -= 0.7
    assert not one.sure(part)


def test_a_group_destroyed_by_hand_is_made_again_one_deleted_is_not(
    redis: Server, roster: Callable[..., Roster]
) -> None:
    topic(redis)
    add(redis, "x")
    one = roster()
    one.join()
    redis.call("HSET", "streaming:mq:commit:t:p:0", "g", "5-0")
    redis.call("XGROUP", "DESTROY", stream("t", 0), "g")
    one.mend(list(one.parts.values()))
    assert begins(redis) == "5-0"
    redis.call("HDEL", "streaming:mq:commit:t:p:0", "g")
    redis.call("XGROUP", "DESTROY", stream("t", 0), "g")
    with pytest.raises(GroupDeleted):
        one.mend(list(one.parts.values()))
    assert redis.call("XINFO", "GROUPS", stream("t", 0)) == []


def test_what_others_have_read_is_caught_up_with(
    redis: Server, roster: Callable[..., Roster]
) -> None:
    topic(redis)
    one = roster()
    one.join()
    entry_id = add(redis, "x")
    redis.call("XREADGROUP", "GROUP", "g", "b", "STREAMS", stream("t", 0), ">")
    one.catch_up(list(one.parts.values()))
    assert one.parts["t", 0].last_id == entry_id


# -- sharing ------------------------------------------------------------------


def test_a_newcomer_is_handed_its_share_without_the_lease_being_free(
    redis: Server, roster: Callable[..., Roster]
) -> None:
    topic(redis, partitions=4)
    one, two = roster("a"), roster("b")
    one.join()
    two.join()
    assert not two.parts
    one.pulse(1e9)
    shed = [part for part in one.parts.values() if part.shed_to]
    assert [part.shed_to for part in shed] == ["b", "b"]
    one.release(shed)
    assert sorted(owners(redis, "t", 4)) == ["a", "a", "b", "b"]
    two.pulse(1e9)
    assert len(one.parts) == len(two.parts) == 2


def test_one_that_leaves_hands_over_what_it_has(
    redis: Server, roster: Callable[..., Roster]
) -> None:
    topic(redis, partitions=2)
    one, two = roster("a"), roster("b")
    one.join()
    two.join()
    one.leave()
    assert owners(redis, "t", 2) == ["b", "b"]
    two.leave()
    assert owners(redis, "t", 2) == [None, None]


def test_one_that_is_retired_takes_nothing_more(
    redis: Server, roster: Callable[..., Roster]
) -> None:
    topic(redis, partitions=2)
    one = roster()
    one.join()
    one.retire()
    one.release([one.parts["t", 1]])
    one.pulse(1e9)
    assert owners(redis, "t", 2) == ["a", None]


def test_a_topic_deleted_is_let_go_and_not_made_again(
    redis: Server, roster: Callable[..., Roster]
) -> None:
    topic(redis, partitions=2)
    one = roster()
    one.join()
    redis.call("FLUSHALL")
    one.mend(list(one.parts.values()))
    wait_until(lambda: one.pulse(1e9) or not one.parts, "it lets go")
    one.pulse(1e9 + 5)
    keys = {*redis.call("KEYS", "*")}
    assert keys <= {b"streaming:mq:members:g"}
