"""A connection cut at every command of a consumer that lives on.

It comes back by itself; what was settled before the cut is not settled twice.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from mqctl.core.handler import SUCCESS, Outcome, Result
from mqctl.core.message import Delivery
from mqctl.core.options import ConsumerOptions, Summary
from mqctl.engine.consumer import Consumer
from mqctl.engine.producer import Producer
from mqctl.engine.session import Session
from mqctl.store.url import parse_url
from tests.support.killpoints import GROUP, World, ledger
from tests.support.proxy import Cut, Moment, Proxy
from tests.support.server import short_directory

SENT = [b"m%d" % n for n in range(3)]
ALONE, STEPS = "script", "steps on a cluster"


@dataclass
class Second:
    """A handler that sends a message back once, to be tried again after `delay_ms`.

    `handled` tells first tries from later ones, not how many were counted: a cut at
    the mark of a start may count one that never was.
    """

    delay_ms: int
    handled: Counter[tuple[bytes, bool]] = field(default_factory=Counter)

    def __call__(self, delivery: Delivery) -> Result:
        again = delivery.message.retry_count > 0
        self.handled[delivery.message.payload, again] += 1
        if not again:
            return Result(Outcome.RETRY, delay_ms=self.delay_ms)
        return SUCCESS

    def drain(self) -> None:
        return

    def kill(self) -> None:
        return


@pytest.fixture(params=[ALONE, STEPS])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    alone = request.param == ALONE
    server = request.getfixturevalue("redis" if alone else "cluster_redis")
    with short_directory() as directory:
        opened = World.open(server, "orders", atomic=alone, directory=directory)
        yield opened
        opened.session.close()


def consume(world: World, handler: Second, cut: Cut | None) -> tuple[Summary, Proxy]:
    world.server.call("FLUSHALL")
    producer = Producer(world.session, world.topic)
    for payload in SENT:
        producer.add(payload, None, {}, None, 3, 0)
    producer.drain()
    options = ConsumerOptions(
        (world.topic,), GROUP, mover_interval_ms=20, max_messages=2 * len(SENT)
    )
    with Proxy(world.server, world.directory, cut) as proxy:
        session = Session.open(parse_url(proxy.url, tls=None))
        try:
            summary = Consumer(session, options, handler=handler).run()
        finally:
            session.close()
    return summary, proxy


def check(world: World, delay_ms: int, cut: Cut | None) -> Proxy:
    handler = Second(delay_ms)
    _, proxy = consume(world, handler, cut)
    left = ledger(world)
    once = Counter({(payload, n): 1 for payload in SENT for n in (False, True)})
    if world.atomic:
        assert handler.handled == once
        assert left.stored == Counter(dict.fromkeys(SENT, 2))
        assert not left.live
    else:  # a copy more than wanted may be left at the end
        assert all(left.stored[payload] <= 3 for payload in SENT)
        assert {p for p, again in handler.handled if not again} == set(SENT)
    return proxy


# Step by step a mover that was cut off leaves its item for half a minute.
forms = pytest.mark.parametrize(
    ("world", "delay_ms"), [(ALONE, 0), (ALONE, 60), (STEPS, 0)], indirect=["world"]
)
moments = pytest.mark.parametrize("moment", ["before", "after"])


@forms
@moments
def test_a_consumer_goes_on_after_a_cut(
    world: World, delay_ms: int, moment: Moment
) -> None:
    commands = check(world, delay_ms, None).commands
    names = {"XREADGROUP", "XCLAIM", "EVALSHA", "XACK", "XADD"} & set(commands)
    assert len(names) >= 3
    for name in names:
        places = [n for n, found in enumerate(commands, 1) if found == name]
        assert check(world, delay_ms, Cut(places[len(places) // 2], moment)).was_cut


@pytest.mark.slow
@pytest.mark.timeout(1800)
@forms
@moments
def test_a_consumer_goes_on_after_a_cut_at_any_command(
    world: World, delay_ms: int, moment: Moment
) -> None:
    number = _JOINED
    while check(world, delay_ms, Cut(number, moment)).was_cut:
        number += 1
    print(f"{number - _JOINED} points")  # noqa: T201 - shown with -rP
    assert number > _JOINED + 20


_JOINED = 20  # before that it connects and joins: a failure there is told
