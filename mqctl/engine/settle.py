"""The one place that settles deliveries: acknowledge, retry, bury.

Where the keys share a slot it is one script: fence, writes, acknowledgements and
frontier are done together or not at all. Elsewhere (a cluster, a plain topic name)
the same steps run in order, each write confirmed before its acknowledgement: a crash
in between costs a duplicate, never a message. Both forms may be repeated: what is
settled already is left alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from mqctl.core.errors import MqError, NotFound, Unreachable
from mqctl.core.ids import parse
from mqctl.core.message import Delivery
from mqctl.engine.session import Session
from mqctl.store import scripts
from mqctl.store.wire import Arg, Command, Reply, ServerError

_CHUNK = 1000
_JAVA_LONG_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Step:
    """One operation that writes before it acknowledges.

    `kind` is ack, again (append to the same partition), later (retry bucket) or dead.
    `deliveries` fences by Redis's counter when given. `fields` are those of the entry
    or item, `item` the key of a retry item, `reason` a dead letter's
    one word, `body` its payload and `delivery` what was handed out, for whoever counts
    or wants to know.
    """

    kind: str
    id: str
    fields: list[bytes] = field(default_factory=list)
    deliveries: int | None = None
    delay_ms: int = 0
    item: str = ""
    reason: str = ""
    body: bytes = b""
    delivery: Delivery | None = None


@dataclass(frozen=True, slots=True)
class Settlement:
    """What is to be settled for one partition of one group by one consumer."""

    topic: str
    partition: int
    group: str
    consumer: str
    acks: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    fence: str = "lease"


@dataclass(frozen=True, slots=True)
class Settled:
    """The answer. `lost`: the lease was somebody else's and nothing was done.

    `results` has done, already or lost for each step, in their order.
    """

    lost: bool
    results: list[str]


def settle_all(
    session: Session, settlements: list[Settlement]
) -> list[Settled | NotFound]:
    """Settle; one trip for all where scripts may be used. See `prepare`.

    NotFound stands where the topic or group is not there. Any other error is raised
    once all were tried.
    """
    prepared = [prepare(session, settlement) for settlement in settlements]
    replies = iter(session.wire.batch([p for p in prepared if not callable(p)]))
    answers = [_try(p) if callable(p) else _read(next(replies)) for p in prepared]
    settled: list[Settled | NotFound] = []
    for answer in answers:
        if isinstance(answer, MqError) and not isinstance(answer, NotFound):
            raise answer
        settled.append(answer)
    return settled


def _try(order: Callable[[], Settled]) -> Settled | MqError:
    try:
        return order()
    except Unreachable:
        raise
    except MqError as error:
        return error


def _read(reply: Reply) -> Settled | MqError:
    if isinstance(reply, ServerError):
        return reply.explained("settling")
    return absorb(reply)


def prepare(
    session: Session, settlement: Settlement
) -> tuple[Arg, ...] | Callable[[], Settled]:
    """Return the one command that settles, or a function that does it in order."""
    keys = _keys(session, settlement)
    if not session.atomic(keys):
        return lambda: _in_order(session, settlement)
    args: list[Arg] = [settlement.group, settlement.consumer, settlement.fence]
    args += [len(settlement.acks), *settlement.acks]
    for step in settlement.steps:
        deliveries = "" if step.deliveries is None else step.deliveries
        args += [step.kind, step.id, deliveries, step.delay_ms, len(step.fields)]
        args += step.fields
    return scripts.settle(session.wire, keys, args)


def absorb(reply: Reply) -> Settled:
    """Read the script's reply."""
    if reply[0] == b"lost":
        return Settled(lost=True, results=[])
    return Settled(lost=False, results=[r.decode() for r in reply[2:]])


def _keys(session: Session, settlement: Settlement) -> list[str]:
    names, topic, index = session.keys, settlement.topic, settlement.partition
    return [
        names.partition(topic, index),
        names.lease(topic, settlement.group, index),
        names.commit(topic, index),
        names.acked(topic, index),
        names.retries(topic),
        names.dlq(topic),
        *(step.item for step in settlement.steps if step.kind == "later"),
    ]


def _in_order(session: Session, settlement: Settlement) -> Settled:
    """Settle without a script over all keys: fence, write, then acknowledge.

    The caller has checked by its own clock that a third of the lease is left; the
    lease itself is looked at once more here.
    """
    stream, lease, commit, acked, *_ = keys = _keys(session, settlement)
    wire, me, group = session.wire, settlement.consumer, settlement.group
    if settlement.fence == "lease" and wire.call("GET", lease) != me.encode():
        return Settled(lost=True, results=[])
    results = _held(session, stream, settlement)
    steps = [s for s, r in zip(settlement.steps, results, strict=True) if r == "done"]
    errors = _write(session, keys, steps)
    done = [s.id for s, error in zip(steps, errors, strict=True) if error is None]
    done = settlement.acks + done
    wire.calls(
        [
            ("XACK", stream, group, *done[i : i + _CHUNK])
            for i in range(0, len(done), _CHUNK)
        ]
    )
    frontier = finished_up_to(session, stream, group)
    if frontier is None:
        raise NotFound(f"the group {group} is gone from {stream}", group=group)
    notes: list[Command] = [scripts.raise_frontier(wire, commit, group, frontier)]
    if done:
        notes.append(("HSET", acked, group, f"{session.clock.now_ms()} {me}"))
    wire.calls(notes)
    for error in errors:
        if error is not None:
            raise error.explained("settling")
    return Settled(lost=False, results=results)


def _write(
    session: Session, keys: list[str], steps: list[Step]
) -> list[ServerError | None]:
    """Write what the steps say; return what kept each from being written."""
    stream, _, _, _, retries, dead, *_ = keys
    writes: dict[int, Command] = {}
    for i, step in enumerate(steps):
        if step.kind == "again":
            writes[i] = ("XADD", stream, "*", *step.fields)
        elif step.kind == "dead":
            writes[i] = ("XADD", dead, "*", *step.fields)
        elif step.kind == "later":
            writes[i] = ("HSET", step.item, *step.fields)
    errors = _errors(session, writes)
    due: dict[int, Command] = {
        i: scripts.schedule_item(session.wire, retries, step.item, step.delay_ms)
        for i, step in enumerate(steps)
        if step.kind == "later" and i not in errors
    }
    errors |= _errors(session, due)
    return [errors.get(i) for i in range(len(steps))]


def _errors(session: Session, commands: dict[int, Command]) -> dict[int, ServerError]:
    replies = session.wire.batch(commands.values())
    return {
        i: reply
        for i, reply in zip(commands, replies, strict=True)
        if isinstance(reply, ServerError)
    }


def _held(session: Session, stream: str, settlement: Settlement) -> list[str]:
    replies = session.wire.calls(
        [
            ("XPENDING", stream, settlement.group, step.id, step.id, 1)
            for step in settlement.steps
        ]
    )
    me = settlement.consumer.encode()
    results: list[str] = []
    for step, rows in zip(settlement.steps, replies, strict=True):
        if not rows:
            results.append("already")
        elif rows[0][1] != me or step.deliveries not in {None, rows[0][3]}:
            results.append("lost")
        else:
            results.append("done")
    return results


def finished_up_to(session: Session, stream: str, group: str) -> str | None:
    """Return the contiguous frontier of a group; None where the group is not there.

    The last delivered id, or the id just before the lowest pending one where that is
    lower: after a reset entries may be pending above what is to be read again. One
    trip.
    """
    summary, groups = session.wire.batch(
        [("XPENDING", stream, group), ("XINFO", "GROUPS", stream)]
    )
    if isinstance(summary, ServerError) or isinstance(groups, ServerError):
        return None
    for row in groups:
        info = dict(zip(row[::2], row[1::2], strict=True))
        if info[b"name"] == group.encode("utf-8", "surrogateescape"):
            delivered = str(info[b"last-delivered-id"].decode())
            if not summary[0]:
                return delivered
            return min(delivered, _just_before(summary[1].decode()), key=parse)
    return None


def _just_before(entry_id: str) -> str:
    """Return an id below this one and above all other entries, readable by Java."""
    ms, seq = parse(entry_id)
    return f"{ms}-{seq - 1}" if seq else f"{ms - 1}-{_JAVA_LONG_MAX}"
