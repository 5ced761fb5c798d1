"""A queue in the middle of its life, with a right answer to every question.

Topic `orders` has two partitions and three groups. `billing` is half way on partition
0, where a consumer that is gone holds two entries, one of them trimmed, and done on
partition 1, which a live member owns; `audit` has read nothing; `late` began in the
middle. Beside it: dead letters in all three codecs, delayed messages and retries, a
large body, the topics `a*` and `ab`, and dead letters of a topic that is gone.
"""

from dataclasses import dataclass
from typing import Any

from mqctl.codecs import dead_letter, native
from mqctl.core.assignment import Member, subscription_id
from mqctl.core.clock import rfc3339
from mqctl.core.keys import KeySpace
from mqctl.core.message import Death, Message
from tests.support.server import Server

KEYS = KeySpace()
GONE, LIVE = "consumer-dead0000", "consumer-live0000"
LARGE = b"x" * 70_000
MINUTE = 60_000


@dataclass(frozen=True)
class Seed:
    """The server, its time at seeding, and how to name what was put there."""

    server: Server
    now: int

    def id(self, minutes_ago: int, seq: int = 0) -> str:
        return f"{self.now - minutes_ago * MINUTE}-{seq}"

    def call(self, *args: Any) -> Any:
        return self.server.call(*args)


def seed(server: Server) -> Seed:
    """Fill an empty server."""
    seconds, micros = map(int, server.call("TIME"))
    made = Seed(server, seconds * 1000 + micros // 1000)
    for topic, partitions in (("orders", 2), ("a*", 1), ("ab", 1)):
        create(made, topic, partitions)
    for index, minutes in ((0, 50), (0, 40), (0, 30), (0, 20), (0, 10), (1, 45)):
        append(made, "orders", index, minutes, b"m%d" % minutes, key=b"k%d" % minutes)
    append_large(made, "orders", 1, 15)
    append(made, "a*", 0, 5, b"star")
    append(made, "ab", 0, 5, b"plain")
    _groups(made)
    _dead(made)
    _waiting(made)
    return made


def create(made: Seed, topic: str, partitions: int) -> None:
    made.call("HSET", KEYS.meta(topic), "partitionCount", partitions)
    made.call("SADD", KEYS.registry, topic)
    streams = [KEYS.partition(topic, i) for i in range(partitions)]
    made.call("SADD", KEYS.partitions(topic), *streams)


def append(
    made: Seed,
    topic: str,
    index: int,
    minutes: int,
    payload: bytes,
    key: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> str:
    fields = native.entry_fields(
        topic=topic,
        partition=index,
        payload=payload,
        key=key,
        headers=headers or {},
        timestamp=rfc3339(made.now - minutes * MINUTE),
        retry_count=0,
        max_retries=3,
    )
    stream = KEYS.partition(topic, index)
    return str(made.call("XADD", stream, made.id(minutes), *fields).decode())


def append_large(made: Seed, topic: str, index: int, minutes: int) -> str:
    """Append an entry whose body is stored aside; return the body's key."""
    ref = KEYS.payload(topic, index, "00000000-0000-4000-8000-000000000001")
    made.call("SET", ref, native.aside_text(LARGE)[0])
    made.call("SADD", KEYS.payload_index(topic), ref)
    made.call("ZADD", KEYS.payload_times, made.now, ref)
    fields = native.aside_fields(
        topic=topic,
        partition=index,
        payload=LARGE,
        ref=ref,
        key=None,
        headers={},
        timestamp=rfc3339(made.now - minutes * MINUTE),
        retry_count=0,
        max_retries=3,
    )
    made.call("XADD", KEYS.partition(topic, index), made.id(minutes), *fields)
    return ref


def _groups(made: Seed) -> None:
    first, second = KEYS.partition("orders", 0), KEYS.partition("orders", 1)
    for stream in (first, second):
        made.call("XGROUP", "CREATE", stream, "billing", "0")
        made.call("XGROUP", "CREATE", stream, "audit", "0")
    made.call("XGROUP", "CREATE", first, "late", made.id(30))
    read = ("XREADGROUP", "GROUP", "billing")
    made.call(*read, GONE, "COUNT", 4, "STREAMS", first, ">")
    made.call(*read, LIVE, "COUNT", 9, "STREAMS", second, ">")
    made.call("XACK", first, "billing", made.id(50), made.id(40))
    made.call("XACK", second, "billing", made.id(45), made.id(15))
    for minutes, deliveries in ((30, 3), (20, 1)):
        made.call(
            *("XCLAIM", first, "billing", GONE, 0, made.id(minutes)),
            *("IDLE", minutes * MINUTE, "RETRYCOUNT", deliveries, "JUSTID"),
        )
    made.call("XDEL", first, made.id(20))
    made.call("HSET", KEYS.commit("orders", 0), "billing", made.id(40))
    made.call("HSET", KEYS.commit("orders", 1), "billing", made.id(15))
    made.call("HSET", KEYS.acked("orders", 0), "billing", f"{made.now - 9000} {GONE}")
    made.call("HSET", KEYS.acked("orders", 1), "billing", f"{made.now - 5000} {LIVE}")
    made.call("SET", KEYS.lease("orders", "billing", 1), LIVE, "PX", 60_000)
    member = Member(LIVE, subscription_id(["orders"]), 1)
    made.call("ZADD", KEYS.members("billing"), made.now, member.format())


def bury(
    made: Seed,
    topic: str,
    minutes: int,
    *,
    payload: bytes,
    codec: str = "string",
    death: Death | None = None,
    partition: int = 0,
    key: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> str:
    """Write a dead letter; return its id."""
    told = death or Death("exhausted", "boom", "billing", GONE, 4, exit_code=1)
    message = Message(
        topic,
        partition,
        made.id(minutes + 1),
        payload,
        key,
        headers or {},
        rfc3339(made.now - (minutes + 1) * MINUTE),
        made.now - (minutes + 1) * MINUTE,
        retry_count=told.attempts - 1,
        max_retries=3,
    )
    fields = dead_letter.encode(
        message,
        told,
        codec=codec,
        failed_at_ms=made.now - minutes * MINUTE,
        last_id=message.id,
    )
    made.call("XADD", KEYS.dlq(topic), made.id(minutes), *fields)
    return made.id(minutes)


def _dead(made: Seed) -> None:
    bury(made, "orders", 60, payload=b"one", partition=1, key=b"k1", codec="kryo5")
    bury(
        made,
        "orders",
        50,
        payload="zwölf".encode() * 40,
        codec="json",
        death=Death("rejected", "", "billing", LIVE, 1, signal="KILL"),
    )
    bury(made, "orders", 40, payload=b"\xff\x00", death=Death("exhausted", attempts=4))
    bury(
        made,
        "orders",
        30,
        payload=b"thrice",
        headers={"x-replay-count": "3", "tag": "t"},
    )
    bury(
        made,
        "orders",
        20,
        payload=b"",
        headers={"x-payload-missing": "true"},
        death=Death("payload-missing", "gone", "billing", LIVE, 1),
    )
    made.call("HSET", KEYS.replayed("orders"), made.id(50), f"1:{made.now - MINUTE}")
    bury(made, "ghost", 10, payload=b"boo")


def _waiting(made: Seed) -> None:
    for number, (due, group, count) in enumerate(
        ((-5_000, "billing", 1), (600_000, None, 0), (900_000, "billing", 2))
    ):
        message = Message(
            "orders",
            0,
            made.id(30) if count else "",
            b"again" if count else b"later",
            b"k",
            {},
            rfc3339(made.now),
            made.now,
            max_retries=3,
        )
        fields = native.item_fields(message, group=group, retry_count=count)
        _item(made, number, due, *fields)
    _item(made, 3, 1_000_000, "topic", "orders", "partitionId", "x")
    item = KEYS.retry_item("orders", uuid(4))
    made.call("ZADD", KEYS.retries("orders"), made.now + 1_100_000, item)


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-00000000000{number}"


def _item(made: Seed, number: int, due: int, *fields: Any) -> None:
    item = KEYS.retry_item("orders", uuid(number))
    made.call("HSET", item, *fields)
    made.call("ZADD", KEYS.retries("orders"), made.now + due, item)
