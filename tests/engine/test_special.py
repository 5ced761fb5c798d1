"""Messages stored once, and messages delivered later, through the producer."""

from collections.abc import Iterator

import pytest

from mqctl.codecs import native
from mqctl.core.errors import BadData, BadUsage
from mqctl.core.message import Outgoing
from mqctl.engine.producer import Producer, ProducerOptions, Sent
from mqctl.engine.retries import listed, move_due
from mqctl.engine.session import Session
from mqctl.engine.special import Later, Special, is_moved
from mqctl.store.url import parse_url
from tests.support.server import Server
from tests.support.wait import wait_until

LARGE = b"x" * 70_000


@pytest.fixture
def session(redis: Server) -> Iterator[Session]:
    session = Session.open(parse_url(redis.url, tls=None))
    yield session
    session.close()


def sending(session: Session, topic: str = "t") -> tuple[Producer, list[Sent]]:
    sent: list[Sent] = []
    options = ProducerOptions(partitions=4)
    return Producer(session, topic, options, report=sent.extend), sent


@pytest.mark.parametrize("payload", [b"small", LARGE])
def test_a_message_with_a_known_key_is_counted_not_stored(
    session: Session, redis: Server, payload: bytes
) -> None:
    producer, sent = sending(session)

    for line in (1, 2, 3):
        producer.send(Outgoing(payload, line=line), Special(dedupe="order-7"))
    producer.drain()

    assert [s.status for s in sent] == ["stored", "duplicate", "duplicate"]
    assert {(s.partition, s.id) for s in sent} == {(sent[0].partition, sent[0].id)}
    stream = session.keys.partition("t", sent[0].partition)
    assert redis.call("XLEN", stream) == 1
    assert redis.call("SCARD", session.keys.payload_index("t")) == (payload is LARGE)
    assert (producer.tally.stored, producer.tally.duplicates) == (1, 2)


def test_without_a_key_the_dedupe_key_chooses_the_partition(session: Session) -> None:
    producer, sent = sending(session)

    for n in range(40):
        producer.send(Outgoing(b"x"), Special(dedupe=f"k-{n % 10}"))
    producer.drain()

    assert producer.tally.stored == 10
    assert len({s.partition for s in sent}) > 1


def test_an_empty_dedupe_key_is_bad_data(session: Session) -> None:
    producer, _ = sending(session)

    with pytest.raises(BadData):
        producer.send(Outgoing(b"x", line=9), Special(dedupe=""))


@pytest.mark.parametrize("payload", [b"text", b"\xff\x00", LARGE, b""])
def test_a_delayed_message_is_delivered_whole_when_due(
    session: Session, redis: Server, payload: bytes
) -> None:
    producer, sent = sending(session)

    producer.send(
        Outgoing(payload, key=b"k", headers={"a": "b"}, line=1),
        Special(later=Later(delay_ms=30)),
    )

    (one,) = sent
    assert (one.status, one.id) == ("delayed", None)
    (item,) = listed(session, "t")
    assert (item.item, item.due_ms) == (one.item, one.due_at_ms)
    assert (item.retry_count, item.original_id) == (0, None)
    wait_until(lambda: move_due(session, "t").moved == 1, "the message is moved")
    stream = session.keys.partition("t", one.partition)
    ((entry_id, flat),) = redis.call("XRANGE", stream, "-", "+")
    assert int(entry_id.partition(b"-")[0]) >= item.due_ms
    message = native.decode("t", one.partition, entry_id.decode(), flat)
    assert (message.payload, message.key) == (payload, b"k")
    assert message.headers["a"] == "b"
    assert message.retry_group is None
    assert message.original_id == entry_id.decode()


def test_a_delayed_message_with_a_known_key_names_the_item(session: Session) -> None:
    producer, sent = sending(session)

    for _ in range(2):
        producer.send(
            Outgoing(b"x"), Special(dedupe="d", later=Later(due_ms=1_900_000_000_000))
        )

    assert [s.status for s in sent] == ["delayed", "duplicate"]
    assert sent[1].id == f"retry:{str(sent[0].item).rsplit(':', 1)[1]}"


def test_on_a_cluster_delays_work_for_any_name_and_both_for_tagged_ones(
    cluster_redis: Server,
) -> None:
    session = Session.open(parse_url(cluster_redis.url, tls=None))
    both = Special(dedupe="d", later=Later(delay_ms=60_000))
    try:
        plain, sent = sending(session, "plain")
        plain.send(Outgoing(b"x"), Special(dedupe="d"))
        plain.send(Outgoing(b"x"), Special(later=Later(delay_ms=60_000)))
        with pytest.raises(BadUsage):
            plain.send(Outgoing(b"x"), both)
        tagged, more = sending(session, "{tagged}")
        tagged.send(Outgoing(b"x"), both)
        tagged.send(Outgoing(b"x"), both)
        tagged.drain()
    finally:
        session.close()

    assert [s.status for s in sent] == ["stored", "delayed", "failed"]
    assert [s.status for s in more] == ["delayed", "duplicate"]


def test_somebody_who_holds_a_lease_moves_delayed_messages(
    session: Session, redis: Server
) -> None:
    sending(session)
    redis.call("XGROUP", "CREATE", session.keys.partition("t", 0), "g", "0", "MKSTREAM")

    assert not is_moved(session, "t", 4)
    redis.call("SET", session.keys.lease("t", "g", 2), "java-1")
    assert is_moved(session, "t", 4)
