"""Dead letters: written in the codec that the topic's readers expect."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from mqctl.codecs import dead_letter
from mqctl.core.message import Death, Message
from mqctl.engine.burial import Burial, find_codec
from mqctl.engine.session import Session
from mqctl.store.url import parse_url
from tests.support.server import Server

TOPIC = "orders"
DEATH = Death("rejected", "bad", group="g", consumer="c", attempts=2)
KRYO = b"\x03\x01g\x82"  # kryo's class id for text, then text


@dataclass
class Yard:
    """A topic with three partitions."""

    server: Server
    session: Session

    def __post_init__(self) -> None:
        meta = self.session.keys.meta(TOPIC)
        self.server.call("HSET", meta, "partitionCount", 3)

    def commit(self, partition: int, field: bytes) -> None:
        key = self.session.keys.commit(TOPIC, partition)
        self.server.call("HSET", key, field, "1-1")

    def bury(self, codec: str) -> None:
        step = Burial(self.session, codec).step(message(), DEATH)
        self.server.call("XADD", self.session.keys.dlq(TOPIC), "*", *step.fields)

    def found(self, *, strangers: bool = False) -> str:
        return find_codec(self.session, TOPIC, strangers=strangers)


def message() -> Message:
    return Message(
        TOPIC, 2, "5-1", b"\xff\x00", b"k", {"a": "b"}, "2026-01-02T03:04:05Z", 0, 1, 3
    )


@pytest.fixture(params=["redis", "cluster_redis"])
def yard(request: pytest.FixtureRequest) -> Iterator[Yard]:
    server = request.getfixturevalue(request.param)
    session = Session.open(parse_url(server.url, tls=None))
    yield Yard(server, session)
    session.close()


def test_plain_text_where_nothing_says_otherwise(yard: Yard) -> None:
    assert yard.found() == "string"
    yard.commit(0, b"g")
    assert yard.found() == "string"


def test_kryo_where_a_stranger_holds_a_lease(yard: Yard) -> None:
    assert yard.found(strangers=True) == "kryo5"


@pytest.mark.parametrize("partition", [0, 2])
@pytest.mark.parametrize(("field", "codec"), [(KRYO, "kryo5"), (b'"g"', "json")])
def test_the_codec_of_the_groups_that_java_committed(
    yard: Yard, partition: int, field: bytes, codec: str
) -> None:
    yard.commit(1, b"plain")
    yard.commit(partition, field)
    assert yard.found() == codec


@pytest.mark.parametrize("codec", ["string", "json", "kryo5"])
def test_the_newest_dead_letter_decides_before_all(yard: Yard, codec: str) -> None:
    yard.commit(0, b'"g"')
    yard.bury("kryo5" if codec == "json" else "json")
    yard.bury(codec)
    assert yard.found(strangers=True) == codec


@pytest.mark.parametrize("codec", ["string", "json", "kryo5"])
def test_a_dead_letter_has_the_message_and_why(yard: Yard, codec: str) -> None:
    step = Burial(yard.session, codec).step(message(), DEATH, deliveries=4)
    assert (step.kind, step.id, step.deliveries) == ("dead", "5-1", 4)
    letter = dead_letter.decode(TOPIC, "6-1", step.fields)
    assert letter.codec == codec
    assert letter.message.payload == b"\xff\x00"
    assert (letter.message.key, letter.message.partition) == (b"k", 2)
    assert letter.last_id == "5-1"
    assert letter.death == DEATH


def test_what_was_found_is_remembered_for_a_while(yard: Yard) -> None:
    burial = Burial(yard.session)
    assert codec_of(burial) == "string"
    yard.bury("json")
    assert codec_of(burial) == "string"
    assert codec_of(Burial(yard.session)) == "json"


def codec_of(burial: Burial) -> str:
    return dead_letter.decode(TOPIC, "6-1", burial.step(message(), DEATH).fields).codec


def test_a_dlq_that_is_no_stream_is_not_asked(yard: Yard) -> None:
    yard.server.call("SET", yard.session.keys.dlq(TOPIC), "no stream")
    assert yard.found() == "string"
