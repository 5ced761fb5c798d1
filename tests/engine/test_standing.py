import pytest

from mqctl.engine.session import Session
from mqctl.engine.standing import Standing, standing
from tests.support.server import Server
from tests.support.sessions import add, session, topic
from tests.support.worker import stream

SLOTS = [("t", 0), ("t", 1)]
NOTHING = Standing(startable=False, pending=0, delayed=0, next_delayed_ms=None)


@pytest.fixture
def look(redis: Server):  # noqa: ANN201
    topic(redis, partitions=2)
    for slot in SLOTS:
        redis.call("XGROUP", "CREATE", stream(*slot), "g", "0", "MKSTREAM")
    with session(redis) as opened:
        yield lambda idle=1000: standing(opened, "g", SLOTS, idle)


def read(server: Server) -> None:
    streams = [stream(*slot) for slot in SLOTS]
    server.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", *streams, ">", ">")


def test_an_empty_topic_has_nothing_left(look) -> None:  # noqa: ANN001
    assert look() == NOTHING


def test_an_entry_not_delivered_can_be_started(redis: Server, look) -> None:  # noqa: ANN001
    add(redis, "x", partition=1)
    assert look().startable


def test_an_entry_in_work_is_only_counted(redis: Server, look) -> None:  # noqa: ANN001
    add(redis, "x")
    add(redis, "y", partition=1)
    read(redis)
    assert look() == Standing(False, 2, 0, None)


def test_an_entry_idle_for_too_long_can_be_started(redis: Server, look) -> None:  # noqa: ANN001
    add(redis, "x")
    read(redis)
    entry = redis.call("XRANGE", stream("t", 0), "-", "+")[0][0]
    redis.call("XCLAIM", stream("t", 0), "g", "c", 0, entry, "IDLE", 5000, "JUSTID")
    assert look(idle=4000).startable
    assert not look(idle=60_000).startable


def test_a_retry_is_delayed_until_it_is_due(redis: Server, look) -> None:  # noqa: ANN001
    now = int(redis.call("TIME")[0]) * 1000
    redis.call("ZADD", "streaming:mq:retry:t", now + 60_000, "item")
    left = look()
    assert (left.startable, left.delayed) == (False, 1)
    assert 50_000 < left.next_delayed_ms <= 61_000
    redis.call("ZADD", "streaming:mq:retry:t", now - 1, "item")
    left = look()
    assert (left.startable, left.delayed) == (True, 0)


def test_a_partition_without_the_group_counts_as_unread(redis: Server) -> None:
    topic(redis)
    with session(redis) as opened:
        assert standing(opened, "g", [("t", 0)], 1000) == NOTHING
        add(redis, "x")
        assert standing(opened, "g", [("t", 0)], 1000).startable


def test_no_partition_at_all_has_nothing_left(redis: Server) -> None:
    with session(redis) as opened:
        assert isinstance(opened, Session)
        assert standing(opened, "g", [], 1000) == NOTHING
