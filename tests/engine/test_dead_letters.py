"""Replaying dead letters where it is cut off half way."""

from collections.abc import Iterator
from typing import Any

import pytest

from mqctl.core.errors import Unreachable
from mqctl.engine.dead_letters_replay import Replay, ReplayOptions
from mqctl.engine.session import Session
from mqctl.store.url import parse_url
from mqctl.store.wire import Wire
from tests.support.seed import KEYS, Seed, bury, create
from tests.support.server import TestServer


@pytest.fixture
def made(cluster_redis: TestServer) -> Seed:
    """Three dead letters of a topic whose keys have slots of their own."""
    made = Seed(cluster_redis, 1_700_000_000_000)
    create(made, "t", 1)
    for minutes in (3, 2, 1):
        bury(made, "t", minutes, payload=b"%d" % minutes)
    return made


@pytest.fixture
def session(made: Seed) -> Iterator[Session]:
    session = Session.open(parse_url(made.server.url, tls=None))
    yield session
    session.close()


def payloads(made: Seed) -> list[bytes]:
    entries = made.call("XRANGE", KEYS.partition("t", 0), "-", "+")
    return [dict(zip(f[::2], f[1::2], strict=True))[b"payload"] for _, f in entries]


def replay(session: Session, *, delete: bool) -> Any:
    options = ReplayOptions(delete=delete)
    return Replay(session, "t", options, lambda _: None).all()


@pytest.mark.cluster
@pytest.mark.parametrize("step", ["HSET", "XDEL", "HDEL"])
def test_cut_off_before_any_step_no_dead_letter_is_lost_and_a_rerun_goes_on(
    made: Seed, session: Session, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    calls = Wire.calls

    def cut(self: Wire, commands: Any) -> Any:
        listed = list(commands)
        if any(command[0] == step for command in listed):
            raise Unreachable("cut off")
        return calls(self, listed)

    monkeypatch.setattr(Wire, "calls", cut)
    with pytest.raises(Unreachable):
        replay(session, delete=True)
    monkeypatch.undo()
    left = made.call("XLEN", KEYS.dlq("t"))
    assert sorted(payloads(made)) == [b"1", b"2", b"3"]
    assert left == (0 if step == "HDEL" else 3)
    again = replay(session, delete=True)
    # what was recorded is not repeated; what was not, is: a duplicate, never a loss
    assert again.replayed == (3 if step == "HSET" else 0)
    assert again.skipped_replayed == (3 if step == "XDEL" else 0)
    assert set(payloads(made)) == {b"1", b"2", b"3"}


@pytest.mark.cluster
def test_a_replay_in_order_records_each_copy(made: Seed, session: Session) -> None:
    assert replay(session, delete=False).replayed == 3
    history = made.call("HGETALL", KEYS.replayed("t"))
    assert [value.split(b":")[0] for value in history[1::2]] == [b"1"] * 3
    assert replay(session, delete=False).skipped_replayed == 3
    assert len(payloads(made)) == 3
