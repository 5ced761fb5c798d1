"""Programs killed at every single command, before it and after it.

After each kill: sent = acknowledged + pending + retrying + dead. Where scripts may be
used every message is in exactly one of these places; elsewhere a crash costs a
duplicate at worst.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from mqctl.codecs import native
from mqctl.core.message import Death, Message
from mqctl.core.receipts import Receipt, format_receipt
from mqctl.engine.burial import Burial
from mqctl.engine.dead_letters_replay import Replay, ReplayOptions
from mqctl.engine.producer import Producer, ProducerOptions
from tests.support.killpoints import (
    GROUP,
    Launcher,
    Ledger,
    Scenario,
    World,
    ledger,
    recover,
    run,
)
from tests.support.proxy import Cut, Moment
from tests.support.server import short_directory

SENT = [b"m%d" % n for n in range(4)]
LARGE = [b"small", b"x" * 70_000, b"tail", b"\xff" * 60_000]
BATCH = [b"%d" % n for n in range(24)]
Program = Callable[[World], list[str]]
PATIENT = ("--lease-ttl", "60s", "--claim-idle", "5m")


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as running:
        yield running


ALONE, CLUSTER, STEPS = "script", "script on a cluster", "steps on a cluster"


@pytest.fixture(params=[ALONE, CLUSTER, STEPS])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    alone = request.param == ALONE
    server = request.getfixturevalue("redis" if alone else "cluster_redis")
    atomic = request.param != STEPS
    topic = "orders" if alone or not atomic else "{orders}"
    with short_directory() as directory:
        opened = World.open(server, topic, atomic=atomic, directory=directory)
        yield opened
        opened.session.close()


# -- what stands on the server before -----------------------------------------


def nothing(_: World) -> bytes:
    return b""


def store(world: World, payloads: list[bytes], partitions: int = 1) -> None:
    options = ProducerOptions(partitions=partitions)
    producer = Producer(world.session, world.topic, options)
    for payload in payloads:
        producer.add(payload, None, {}, None, 3, 0)
    producer.drain()


def sent(world: World) -> bytes:
    store(world, SENT)
    return b""


def delivered(world: World) -> bytes:
    """Everything in the hands of a consumer that is gone; its receipts."""
    store(world, SENT)
    call, stream = world.server.call, world.stream()
    call("XGROUP", "CREATE", stream, GROUP, "0")
    ((_, entries),) = call("XREADGROUP", "GROUP", GROUP, "gone", "STREAMS", stream, ">")
    world.log.write_bytes(b"".join(p + b"\n" for p in SENT))
    receipts = [
        Receipt(world.topic, 0, entry.decode(), GROUP, "gone", 1)
        for entry, _ in entries
    ]
    return "".join(format_receipt(r) + "\n" for r in receipts).encode()


def message(world: World, payload: bytes) -> Message:
    return Message(
        world.topic, 0, "5-1", payload, b"k", {}, "2026-01-02T03:04:05Z", 0, 0, 3
    )


def due(world: World) -> bytes:
    """Everything in the retry bucket, due."""
    store(world, [])
    keys, call = world.session.keys, world.server.call
    for n, payload in enumerate(SENT):
        item = keys.retry_item(world.topic, str(n))
        fields = native.item_fields(message(world, payload), group=GROUP, retry_count=1)
        call("HSET", item, *fields)
        call("ZADD", keys.retries(world.topic), n + 1, item)
    return b""


def dead(world: World) -> bytes:
    """Everything a dead letter."""
    store(world, [])
    burial = Burial(world.session)
    for payload in SENT:
        step = burial.step(message(world, payload), Death("rejected", group=GROUP))
        world.server.call(
            "XADD", world.session.keys.dlq(world.topic), "*", *step.fields
        )
    return b""


# -- the programs -------------------------------------------------------------


def lines(payloads: list[bytes]) -> bytes:
    return b"".join(payload + b"\n" for payload in payloads)


def failing(code: int, base: str) -> Program:
    def arguments(world: World) -> list[str]:
        script = f'cat >>"$0"; echo >>"$0"; exit {code}'
        return [
            *("consume", world.topic, "-g", GROUP, "-n", str(len(SENT)), *PATIENT),
            *("--retry-base", base, "--retry-cap", base),
            *("--", "sh", "-c", script, str(world.log)),
        ]

    return arguments


def printing(world: World) -> list[str]:
    count = str(len(SENT))
    return ["consume", world.topic, "-g", GROUP, "-n", count, *PATIENT]


def settling(*words: str) -> Program:
    return lambda _: [*words, "-"]


def producing(world: World) -> list[str]:
    return [
        *("produce", world.topic, "--partitions", "4", "--print", "ndjson"),
        *("--batch", "7"),
    ]


def offloading(world: World) -> list[str]:
    return ["produce", world.topic, "--print", "ndjson", "-i", "null"]


def replaying(*options: str) -> Program:
    return lambda world: ["dlq", "replay-all", world.topic, "--yes", *options]


# -- what must hold -----------------------------------------------------------


def printed(world: World) -> list[bytes]:
    return world.out.read_bytes().splitlines()


def check_settled(world: World, crashed: Ledger) -> None:
    """Nothing lost, nothing twice but where steps are taken one by one."""
    noted = world.log.read_bytes().splitlines() + printed(world)
    for payload in SENT:
        copies = crashed.live[payload]
        assert copies or payload in noted, f"{payload!r} is lost: {crashed}"
        assert copies <= (1 if world.atomic else 2), f"{payload!r} is there twice"
    handled = recover(world)
    for payload in SENT:
        given_up = crashed.dead[payload]
        assert handled[payload] <= crashed.live[payload] - given_up
        assert handled[payload] or given_up or payload in noted
    left = ledger(world)
    assert not left.waiting
    assert not left.delayed
    assert left.dead == crashed.dead
    if world.atomic:
        items = world.session.keys.retry_item(world.topic, "*")
        assert world.server.call("KEYS", items) == []


def check_not_lost(world: World, crashed: Ledger) -> None:
    """A failing handler finishes nothing: every message still is somewhere."""
    for payload in SENT:
        assert crashed.live[payload], f"{payload!r} is lost: {crashed}"
    check_settled(world, crashed)


def check_produced(payloads: list[bytes], world: World, crashed: Ledger) -> None:
    """Nothing twice, in order, and everything stored that was reported stored."""
    assert set(crashed.stored) <= set(payloads)
    assert set(crashed.stored.values()) <= {1}
    reported = [json.loads(line) for line in printed(world)]
    assert {r["status"] for r in reported} <= {"stored"}
    stored = [p for p in payloads if crashed.stored[p]]
    assert stored == payloads[: len(stored)]
    assert [payloads[r["line"] - 1] for r in reported] == stored[: len(reported)]
    check_bodies(world)
    if stored:
        assert recover(world) == crashed.stored


def check_replayed(delete: bool, world: World, crashed: Ledger) -> None:
    """A dead letter is copied once, however often the replay is run again."""
    most = 1 if world.atomic else 2
    for payload in SENT:
        copies = crashed.waiting[payload]
        assert copies + crashed.dead[payload] >= 1
        assert copies <= most
        assert crashed.dead[payload] == 1 or delete
        if world.atomic and delete:
            assert copies + crashed.dead[payload] == 1
    if crashed.dead:
        options = ReplayOptions(delete=delete)
        Replay(world.session, world.topic, options, lambda _: None).all()
    left = ledger(world).dead
    if not delete:
        assert left == Counter(SENT)
    elif world.atomic:
        assert not left
    else:  # recorded and not yet deleted: skipped by the next run, not copied twice
        assert all(n == 1 == crashed.waiting[payload] for payload, n in left.items())
    handled = recover(world)
    assert all(1 <= handled[payload] <= most for payload in SENT)


def check_bodies(world: World) -> None:
    """Every body stored aside is known to the sweep."""
    keys, call = world.session.keys, world.server.call
    bodies = set(call("KEYS", keys.payload(world.topic, 0, "*")))
    assert bodies <= set(call("ZRANGE", keys.payload_times, 0, -1))
    assert bodies <= set(call("SMEMBERS", keys.payload_index(world.topic)))


SCENARIOS = [
    Scenario(
        "produce a batch over partitions",
        producing,
        lambda _: lines(BATCH),
        partial(check_produced, BATCH),
    ),
    Scenario(
        "produce large bodies",
        offloading,
        lambda _: b"".join(p + b"\0" for p in LARGE),
        partial(check_produced, LARGE),
    ),
    Scenario("print and acknowledge", printing, sent, check_settled),
    Scenario("retry at once", failing(1, "10ms"), sent, check_not_lost),
    Scenario("retry by the bucket", failing(1, "60s"), sent, check_not_lost),
    Scenario("bury", failing(65, "1s"), sent, check_not_lost),
    Scenario("move what is due", printing, due, check_settled),
    Scenario("ack receipts", settling("ack"), delivered, check_settled),
    Scenario(
        "retry receipts at once",
        settling("retry", "--delay", "0ms"),
        delivered,
        check_not_lost,
    ),
    Scenario(
        "retry receipts later",
        settling("retry", "--delay", "60s"),
        delivered,
        check_not_lost,
    ),
    Scenario("bury receipts", settling("dead"), delivered, check_not_lost),
    Scenario("replay and keep", replaying(), dead, partial(check_replayed, False)),
    Scenario(
        "replay and delete",
        replaying("--delete"),
        dead,
        partial(check_replayed, True),
    ),
]
scenarios = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)


@pytest.mark.parametrize("world", [ALONE, STEPS], indirect=True)
@scenarios
def test_killed_at_a_few_commands_it_loses_nothing(
    world: World, launcher: Launcher, scenario: Scenario
) -> None:
    whole = run(world, launcher, scenario, None)
    last = {name: number for number, name in enumerate(whole.commands, 1)}
    for name, moment in _TURNING:
        if name in last:
            run(world, launcher, scenario, Cut(last[name], moment))


_TURNING: list[tuple[str, Moment]] = [
    ("SET", "after"),
    ("XADD", "before"),
    ("XADD", "after"),
    ("XACK", "after"),
    ("EVALSHA", "before"),
    ("EVALSHA", "after"),
]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("moment", ["before", "after"])
@scenarios
def test_killed_at_every_command_it_loses_nothing(
    world: World,
    launcher: Launcher,
    scenario: Scenario,
    moment: Moment,
) -> None:
    number = 1
    while run(world, launcher, scenario, Cut(number, moment)).killed:
        number += 1
    assert number > 5
    print(f"{number - 1} points")  # noqa: T201 - shown with -rP
