"""Bodies stored aside: when, what is written first, what is read."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from mqctl.codecs import native
from mqctl.core.errors import OutOfMemory
from mqctl.core.message import Message
from mqctl.engine import payloads
from mqctl.engine.producer import Producer
from mqctl.engine.session import Session
from mqctl.store.url import parse_url
from tests.support.proxy import Cut, Proxy
from tests.support.server import Server, short_directory

TOPIC = "orders"


@dataclass
class Store:
    """A session, and the server behind it."""

    server: Server
    session: Session

    def produce(self, *bodies: bytes) -> list[Message]:
        """Store messages; return what their entries say, bodies not loaded."""
        producer = Producer(self.session, TOPIC)
        for body in bodies:
            producer.add(body, b"k", {"a": "b"}, None, 3, 0)
        producer.drain()
        stream = self.session.keys.partition(TOPIC, 0)
        return [
            native.decode(TOPIC, 0, entry.decode(), flat)
            for entry, flat in self.server.call("XRANGE", stream, "-", "+")
        ]

    def bodies(self) -> set[bytes]:
        keys = self.session.keys
        return set(self.server.call("KEYS", keys.payload(TOPIC, 0, "*")))

    def indexed(self) -> tuple[set[bytes], set[bytes]]:
        keys, call = self.session.keys, self.server.call
        return (
            set(call("SMEMBERS", keys.payload_index(TOPIC))),
            set(call("ZRANGE", keys.payload_times, 0, -1)),
        )


@pytest.fixture
def store(redis: Server) -> Iterator[Store]:
    session = Session.open(parse_url(redis.url, tls=None))
    yield Store(redis, session)
    session.close()


@pytest.mark.parametrize(
    ("body", "aside"),
    [
        (b"x" * 65_534, False),
        (b"x" * 65_535, True),
        (b'"' * 32_767, False),
        (b'"' * 32_767 + b"x", True),
        (b"\\" * 32_767, False),
        (b"\n" * 32_768, True),
        (b"\x01" * 10_922 + b"xx", False),
        (b"\x01" * 10_922 + b"xxx", True),
        ("é".encode() * 32_767, False),
        ("é".encode() * 32_767 + b"x", True),
        ("🙂".encode() * 16_383 + b"xx", False),
        ("🙂".encode() * 16_384, True),
        (b"\xff" * 49_149, False),
        (b"\xff" * 49_152, True),
        (b"x" * payloads.SURE, False),
    ],
    ids=lambda value: f"{value[:2]!r}*{len(value)}" if isinstance(value, bytes) else "",
)
def test_a_body_of_more_than_65536_bytes_of_json_is_stored_aside(
    store: Store, body: bytes, aside: bool
) -> None:
    (stored,) = store.produce(body)
    assert (stored.payload_ref is not None) == aside
    assert len(store.bodies()) == aside
    (loaded,) = payloads.load(store.session, [stored])
    assert loaded is not None
    assert (loaded.payload, loaded.payload_ref) == (body, None)
    assert loaded.key == b"k"
    assert loaded.headers["a"] == "b"


def test_a_body_aside_is_indexed_and_stays(store: Store) -> None:
    messages = store.produce(b"x" * 70_000, b"small", b"y" * 70_000)
    refs = {m.payload_ref.encode() for m in messages if m.payload_ref}
    assert len(refs) == 2
    assert store.bodies() == refs
    assert store.indexed() == (refs, refs)
    assert all(store.server.call("PTTL", ref) == -1 for ref in refs)


def test_order_is_kept_around_a_body_aside(store: Store) -> None:
    sent = [b"1", b"2" * 70_000, b"3", b"4" * 70_000, b"5"]
    loaded = payloads.load(store.session, store.produce(*sent))
    assert [m.payload for m in loaded if m] == sent


def test_a_body_that_is_gone_is_none_and_hides_no_other(store: Store) -> None:
    messages = store.produce(b"x" * 70_000, b"y" * 70_000, b"small")
    store.server.call("DEL", messages[0].payload_ref)
    first, second, third = payloads.load(store.session, messages)
    assert first is None
    assert second is not None
    assert second.payload == b"y" * 70_000
    assert third == messages[2]


def test_only_payload_keys_are_ever_read(store: Store) -> None:
    (message,) = store.produce(b"small")
    store.server.call("SET", "secret", '"stolen"')
    store.server.call("HSET", f"{store.session.keys.payload_prefix}hash", "a", "b")
    for ref in ("secret", f"{store.session.keys.payload_prefix}hash"):
        assert payloads.load(store.session, [replace(message, payload_ref=ref)]) == [
            None
        ]


def test_a_body_that_is_gone_is_marked_in_its_headers(store: Store) -> None:
    (message,) = store.produce(b"x" * 70_000)
    marked = payloads.marked_missing(message)
    assert (marked.payload, marked.payload_ref) == (b"", None)
    assert marked.headers["x-payload-missing"] == "true"
    assert marked.headers["x-payload-missing-ref"] == message.payload_ref


def test_a_full_server_stores_no_body(store: Store) -> None:
    store.server.call("CONFIG", "SET", "maxmemory", 1)
    try:
        with pytest.raises(OutOfMemory):
            payloads.store(store.session, TOPIC, 0, b"x" * 70_000)
    finally:
        store.server.call("CONFIG", "SET", "maxmemory", 0)
    assert store.bodies() == set()


def test_a_connection_that_ends_leaves_no_body_unknown_to_the_sweep(
    store: Store,
) -> None:
    for number in range(3, 6):  # TIME and INFO come first
        store.server.call("FLUSHALL")
        with short_directory() as directory:
            with Proxy(store.server, directory, Cut(number, "after")) as proxy:
                session = Session.open(parse_url(proxy.url, tls=None))
                with pytest.raises(Exception, match="lost the server"):
                    payloads.store(session, TOPIC, 0, b"x" * 70_000)
            by_topic, by_time = store.indexed()
            assert store.bodies() <= by_topic
            assert store.bodies() <= by_time
    assert len(store.bodies()) == 1
