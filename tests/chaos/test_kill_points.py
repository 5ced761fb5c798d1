"""Programs killed at every single command, before it and after it.

After each kill: sent = acknowledged + pending + retrying + dead. Where scripts may be
used every message is in exactly one of these places; elsewhere a crash costs a
duplicate at worst.
"""

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from mqctl.codecs import native
from mqctl.core.handler import SUCCESS, Outcome, Result
from mqctl.core.message import Death, Message, Outgoing
from mqctl.core.receipts import Receipt, format_receipt
from mqctl.engine import payloads
from mqctl.engine.burial import Burial
from mqctl.engine.dead_letters_replay import Replay, ReplayOptions
from mqctl.engine.producer import Producer, ProducerOptions
from mqctl.engine.special import Later, Special
from tests.support.killpoints import (
    GROUP,
    Launcher,
    Ledger,
    Recorder,
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
OLD = [b"o%d" % n for n in range(6)]
FAILING, FAILURES = b"m1", 2
SLOW = "slow"
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


def store(world: World, bodies: list[bytes], partitions: int = 1) -> None:
    options = ProducerOptions(partitions=partitions)
    producer = Producer(world.session, world.topic, options)
    for body in bodies:
        producer.add(body, None, {}, None, 3, 0)
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


def twice(_: World) -> bytes:
    """Records with a key each, those after the first four with keys seen before."""
    return b"".join(
        b'{"payload_b64":"%s","headers":{"n":"%d"}}\n' % (b64encode(body), n)
        for n, body in [*enumerate(LARGE), *enumerate(LARGE[:2])]
    )


def later(world: World) -> bytes:
    """Everything delivered later, the time being up."""
    store(world, [])
    producer = Producer(world.session, world.topic, ProducerOptions())
    for payload in SENT:
        producer.send(Outgoing(payload), Special(later=Later(delay_ms=1)))
    return b""


def aside(world: World, bodies: list[bytes]) -> list[str]:
    """Append messages, every other with its body stored aside; return the ids."""
    store(world, [])
    session, ids = world.session, []
    for n, body in enumerate(bodies):
        fields = native.entry_fields if n % 2 else native.aside_fields
        given: dict[str, Any] = {}
        if fields is native.aside_fields:
            given["ref"] = payloads.store(session, world.topic, 0, body)
        flat = fields(
            topic=world.topic,
            partition=0,
            payload=body,
            key=None,
            headers={},
            timestamp="2026-01-02T03:04:05Z",
            retry_count=0,
            max_retries=3,
            **given,
        )
        ids.append(world.server.call("XADD", world.stream(), "*", *flat).decode())
    return ids


def sent_aside(world: World) -> bytes:
    aside(world, SENT)
    return b""


def read(world: World, group: str, count: int, ids: list[str]) -> None:
    """Hand entries to a group that acknowledges these."""
    call, stream = world.server.call, world.stream()
    call("XGROUP", "CREATE", stream, group, "0")
    call(
        *("XREADGROUP", "GROUP", group, "gone", "COUNT", count),
        *("STREAMS", stream, ">"),
    )
    call("XACK", stream, group, *ids)


def shared(world: World) -> bytes:
    """A second group has finished two, one is in its hands, one it has not read."""
    ids = aside(world, SENT)
    read(world, SLOW, 3, ids[:2])
    return b""


def old(world: World) -> bytes:
    """Much that is finished, of which a slow second group has finished two."""
    ids = aside(world, OLD)
    read(world, GROUP, len(OLD), ids)
    read(world, SLOW, 3, ids[:2])
    aside(world, SENT)
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


def deleting(policy: str) -> Program:
    return lambda world: [*printing(world), "--ack-delete", policy]


def trimming(world: World) -> list[str]:
    return [*printing(world), "--keep", "2"]


def insisting(mode: str) -> Program:
    """One message fails twice; payload and attempt of every try are noted."""

    def arguments(world: World) -> list[str]:
        script = (
            'read x; echo "$x $MQ_ATTEMPT" >>"$0"; '
            f'[ "$x" != {FAILING.decode()} ] || [ "$MQ_ATTEMPT" -gt {FAILURES} ]'
        )
        return [
            *("consume", world.topic, "-g", GROUP, *PATIENT, "--retry-mode", mode),
            *("--backoff", "20ms", "--idle-exit", "150ms"),
            *("--", "sh", "-c", script, str(world.log)),
        ]

    return arguments


def settling(*words: str) -> Program:
    return lambda _: [*words, "-"]


def producing(world: World) -> list[str]:
    return [
        *("produce", world.topic, "--partitions", "4", "--print", "ndjson"),
        *("--batch", "7"),
    ]


def offloading(world: World) -> list[str]:
    return ["produce", world.topic, "--print", "ndjson", "-i", "null"]


def producing_once(world: World) -> list[str]:
    return [
        *("produce", world.topic, "--partitions", "4", "--print", "ndjson"),
        *("-i", "ndjson", "--dedupe-key", "header:n"),
    ]


def producing_later(world: World) -> list[str]:
    return ["produce", world.topic, "--print", "ndjson", "--delay", "1h"]


def replaying(*options: str) -> Program:
    return lambda world: ["dlq", "replay-all", world.topic, "--yes", *options]


# -- what must hold -----------------------------------------------------------


def printed(world: World) -> list[bytes]:
    return world.out.read_bytes().splitlines()


def check_settled(world: World, crashed: Ledger, **options: Any) -> None:
    """Nothing lost, nothing twice but where steps are taken one by one.

    `options` are those of the consumer that comes after the crash.
    """
    noted = world.log.read_bytes().splitlines() + printed(world)
    for payload in SENT:
        copies = crashed.live[payload]
        assert copies or payload in noted, f"{payload!r} is lost: {crashed}"
        assert copies <= (1 if world.atomic else 2), f"{payload!r} is there twice"
    handled = recover(world, **options)
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


def check_once(world: World, crashed: Ledger) -> None:
    """Sent again after the kill, each message is there once, under its first id."""
    assert set(crashed.stored.values()) <= {1}
    assert ledger(world).stored == Counter(LARGE)
    reported = [json.loads(line) for line in printed(world)]
    assert {r["line"] for r in reported} == set(range(1, len(LARGE) + 3))
    places = {((r["line"] - 1) % len(LARGE), r["partition"], r["id"]) for r in reported}
    assert len(places) == len(LARGE)
    check_bodies(world)
    assert recover(world) == Counter(LARGE)


def check_delayed(world: World, crashed: Ledger) -> None:
    """What is reported waits, nothing twice, and all of it is delivered when due."""
    assert not crashed.stored
    assert set(crashed.delayed.values()) <= {1}
    reported = [json.loads(line) for line in printed(world)]
    assert {r["status"] for r in reported} <= {"delayed"}
    waiting = [p for p in SENT if crashed.delayed[p]]
    assert waiting[: len(reported)] == [SENT[r["line"] - 1] for r in reported]
    assert len(waiting) - len(reported) <= 1
    assert not crashed.whole or len(waiting) == len(SENT)
    if waiting:
        assert recover(world) == crashed.delayed
    items = world.session.keys.retry_item(world.topic, "*")
    without_time = world.server.call("KEYS", items)
    assert len(without_time) <= (0 if world.atomic else 1)


def insist(payload: bytes, attempt: int) -> Result:
    """Answer as the program does."""
    fails = payload == FAILING and attempt <= FAILURES
    return Result(Outcome.RETRY) if fails else SUCCESS


def check_insisted(mode: str, world: World, crashed: Ledger) -> None:
    """No attempt is lost or counted twice; in place nothing overtakes the message."""
    noted = [line.split() for line in world.log.read_bytes().splitlines()]
    before = [(payload, int(attempt)) for payload, attempt in noted]
    done = {
        payload for payload, attempt in before if insist(payload, attempt) is SUCCESS
    }
    assert set(crashed.live.values()) <= {1}
    assert crashed.live.keys() | done == set(SENT)
    kept = kept_attempts(world)
    assert all((FAILING, attempts) in before for attempts in kept)

    after, options = Recorder(), {"retry_mode": mode, "backoff": (20,)}
    if mode == "in-place":  # what is pending is taken however short it has been idle
        after.answer = insist
        options["claim_idle_ms"] = 300_000
    assert recover(world, after, **options) == crashed.live

    tries = before + after.tries
    for payload in SENT:
        attempts = [attempt for tried, attempt in tries if tried == payload]
        assert attempts == sorted(set(attempts)), tries
        assert attempts[-1] <= (FAILURES + 2 if payload == FAILING else 2), tries
    if mode == "in-place":
        assert [payload for payload, _ in tries] == sorted(p for p, _ in tries), tries
    left = ledger(world)
    assert not left.live
    assert kept_attempts(world) == []


def kept_attempts(world: World) -> list[int]:
    """Return the attempts that strict order's record holds, if there is one."""
    record = world.session.keys.kept(world.topic, GROUP, 0)
    found = world.server.call("HGET", record, "attempts")
    return [] if found is None else [int(found)]


def check_deleted(world: World, crashed: Ledger) -> None:
    """Only what was acknowledged is gone, and all of it but for the crash."""
    finished = crashed.stored - crashed.waiting
    assert not crashed.whole or not crashed.stored
    check_settled(world, crashed, ack_delete="immediate", keep_payloads=True)
    assert ledger(world).stored == finished
    check_bodies(world)


def check_shared(world: World, crashed: Ledger) -> None:
    """What another group has yet to finish stays, with its body."""
    theirs = Counter(SENT[2:])
    assert ledger(world, SLOW).waiting == theirs
    assert not crashed.whole or crashed.stored == theirs
    finished = crashed.stored - crashed.waiting - theirs
    policy: dict[str, Any] = {"ack_delete": "all-groups-ack", "keep_payloads": True}
    check_settled(world, crashed, **policy)
    assert ledger(world, SLOW).waiting == theirs
    assert recover(world, group=SLOW, **policy) == theirs
    assert ledger(world).stored == finished
    check_bodies(world)
    if world.atomic:
        sets = world.session.keys.acks(world.topic, 0, "*")
        assert len(world.server.call("KEYS", sets)) <= len(finished)


def check_trimmed(world: World, crashed: Ledger) -> None:
    """Trimming takes nothing that the slow group has yet to finish."""
    theirs = Counter(OLD[2:] + SENT)
    assert ledger(world, SLOW).waiting == theirs
    assert set(OLD[:2]) & crashed.stored.keys() in (set(), set(OLD[:2]))
    assert not crashed.whole or crashed.stored == theirs
    check_settled(world, crashed)
    check_bodies(world)
    assert recover(world, group=SLOW) == theirs


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
    Scenario(
        "produce once",
        producing_once,
        twice,
        check_once,
        (("SET", "after"), ("EVALSHA", "after")),
        again=True,
    ),
    Scenario(
        "produce later",
        producing_later,
        lambda _: lines(SENT),
        check_delayed,
        (("HSET", "after"), ("EVALSHA", "after")),
    ),
    Scenario(
        "move what was to come later",
        printing,
        later,
        check_settled,
        (("XADD", "after"),),
    ),
    Scenario(
        "wait in place",
        insisting("in-place"),
        sent,
        partial(check_insisted, "in-place"),
        (("HSET", "before"), ("PEXPIRE", "before"), ("EVAL", "before")),
    ),
    Scenario(
        "leave pending",
        insisting("pending"),
        sent,
        partial(check_insisted, "pending"),
        (("XCLAIM", "after"),),
    ),
    Scenario(
        "acknowledge and delete",
        deleting("immediate"),
        sent_aside,
        check_deleted,
        (("EVAL", "before"), ("DEL", "before")),
    ),
    Scenario(
        "delete what all groups have finished",
        deleting("all-groups-ack"),
        shared,
        check_shared,
        (("EVAL", "before"), ("SADD", "after")),
    ),
    Scenario(
        "trim behind a slow group",
        trimming,
        old,
        check_trimmed,
        (("DEL", "before"),),
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
    for name, moment in scenario.turns:
        if name in last:
            run(world, launcher, scenario, Cut(last[name], moment))


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
    number = points = 0
    while True:
        number += 1
        done = run(world, launcher, scenario, Cut(number, moment))
        points += done.killed
        # A program may end before a reply comes, that of a blocking read for one.
        if not done.killed and len(done.commands) < number:
            break
    assert points > 5
    print(f"{points} of {number - 1} points")  # noqa: T201 - shown with -rP
