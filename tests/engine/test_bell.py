import select
from collections.abc import Iterator

import pytest

from mqctl.engine.bell import Bell
from mqctl.engine.session import Session
from mqctl.store.url import parse_url
from tests.support.server import Server

STREAMS = [f"stream:topic:orders:p:{n}" for n in range(4)]


@pytest.fixture(params=["redis", "cluster_redis"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def bell(server: Server) -> Iterator[Bell]:
    session = Session.open(parse_url(server.url, tls=None))
    made = Bell(session, 60_000)
    yield made
    made.drop()
    session.close()


def rings(bell: Bell, timeout: float) -> list[int]:
    ready, _, _ = select.select(bell.filenos(), [], [], timeout)
    return ready


@pytest.mark.parametrize("stream", STREAMS)
def test_it_rings_for_each_stream_it_watches(
    server: Server, bell: Bell, stream: str
) -> None:
    bell.arm(dict.fromkeys(STREAMS, "0-0"))
    assert not rings(bell, 0.05)
    server.call("XADD", stream, "*", "n", 1)
    assert rings(bell, 5)


def test_it_rings_at_once_for_what_is_there(server: Server, bell: Bell) -> None:
    server.call("XADD", STREAMS[3], "5-5", "n", 1)
    bell.arm(dict.fromkeys(STREAMS, "5-4"))
    ready = rings(bell, 5)
    assert ready
    bell.heard(ready)
    bell.arm(dict.fromkeys(STREAMS, "5-5"))
    assert not rings(bell, 0.05)


def test_armed_again_with_the_same_it_goes_on_waiting(
    server: Server, bell: Bell
) -> None:
    watched = dict.fromkeys(STREAMS, "0-0")
    bell.arm(watched)
    before = bell.filenos()
    bell.arm(dict(watched))
    assert bell.filenos() == before
    server.call("XADD", STREAMS[0], "*", "n", 1)
    assert rings(bell, 5)


def test_told_to_watch_nothing_it_is_silent(server: Server, bell: Bell) -> None:
    bell.arm(dict.fromkeys(STREAMS, "0-0"))
    bell.arm({})
    assert bell.filenos() == []
    server.call("XADD", STREAMS[0], "*", "n", 1)
    bell.heard([])


def test_a_wait_that_ends_without_an_entry_rings_and_may_begin_again(
    server: Server,
) -> None:
    session = Session.open(parse_url(server.url, tls=None))
    bell = Bell(session, 1)
    for _ in range(2):
        bell.arm({STREAMS[0]: "0-0"})
        ready = rings(bell, 5)
        assert ready
        bell.heard(ready)
        assert bell.filenos() == []
    bell.drop()
    session.close()
