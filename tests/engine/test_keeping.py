"""Strict order's record, by the script and step by step."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from mqctl.engine.keeping import Keeper, Kept
from mqctl.engine.session import Session
from mqctl.store.url import parse_url
from tests.support.server import Server

LONG = 30 * 24 * 3_600_000
SCRIPT, TAGGED, STEPS = "script", "script on a cluster", "steps on a cluster"


@dataclass(frozen=True)
class Desk:
    """A keeper called `me` that holds partition 0 of a topic."""

    server: Server
    keeper: Keeper
    topic: str

    @property
    def slot(self) -> tuple[str, int]:
        return self.topic, 0

    @property
    def record(self) -> str:
        return self.keeper.session.keys.kept(self.topic, "g", 0)

    @property
    def lease(self) -> str:
        return self.keeper.session.keys.lease(self.topic, "g", 0)

    def stored(self) -> dict[bytes, bytes]:
        flat = self.server.call("HGETALL", self.record)
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def now_ms(self) -> int:
        seconds, micros = self.server.call("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    def look(self) -> Kept | None:
        (found,) = self.keeper.look([self.slot])
        return found


@pytest.fixture(params=[SCRIPT, TAGGED, STEPS])
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    alone = request.param == SCRIPT
    server = request.getfixturevalue("redis" if alone else "cluster_redis")
    session = Session.open(parse_url(server.url, tls=None))
    topic = "{orders}" if request.param == TAGGED else "orders"
    opened = Desk(server, Keeper(session, "g", "me"), topic)
    server.call("SET", opened.lease, "me")
    yield opened
    session.close()


def test_both_forms_are_tried(desk: Desk, request: pytest.FixtureRequest) -> None:
    steps = "steps" in request.node.name
    assert desk.keeper.session.atomic([desk.lease, desk.record]) is not steps


def test_what_is_kept_is_found_by_the_next_owner(desk: Desk) -> None:
    before = desk.now_ms()

    assert desk.keeper.keep(desk.slot, "5-1", 3, 60_000)

    found = desk.look()
    assert found is not None
    assert found.id == "5-1"
    assert 50_000 < found.wait_ms <= 60_100
    record = desk.stored()
    assert record.keys() == {b"id", b"attempts", b"first_failed_at_ms", b"due_at_ms"}
    assert record[b"attempts"] == b"3"
    first, due = int(record[b"first_failed_at_ms"]), int(record[b"due_at_ms"])
    assert due - first == 60_000
    assert abs(first - before) < 10_000
    assert LONG - 60_000 < desk.server.call("PTTL", desk.record) <= LONG


def test_a_wait_that_is_over_is_no_wait(desk: Desk) -> None:
    desk.keeper.keep(desk.slot, "5-1", 1, 60_000)
    desk.server.call("HSET", desk.record, "due_at_ms", 1)
    assert desk.look() == Kept("5-1", 0)


def test_the_first_failure_of_a_message_stays_the_first(desk: Desk) -> None:
    desk.keeper.keep(desk.slot, "5-1", 1, 0)
    desk.server.call("HSET", desk.record, "first_failed_at_ms", 7)

    assert desk.keeper.keep(desk.slot, "5-1", 2, 0)

    record = desk.stored()
    assert (record[b"first_failed_at_ms"], record[b"attempts"]) == (b"7", b"2")


def test_a_stale_record_passes_nothing_on_to_another_message(desk: Desk) -> None:
    desk.server.call(
        "HSET", desk.record, "id", "5-1", "attempts", 9, "first_failed_at_ms", 7
    )

    assert desk.keeper.keep(desk.slot, "5-2", 1, 0)

    record = desk.stored()
    assert (record[b"id"], record[b"attempts"]) == (b"5-2", b"1")
    assert int(record[b"first_failed_at_ms"]) > 7


@pytest.mark.parametrize("holder", [None, "other"])
def test_who_has_lost_the_lease_keeps_nothing(desk: Desk, holder: str | None) -> None:
    desk.keeper.keep(desk.slot, "5-1", 2, 60_000)
    kept = desk.stored()
    desk.server.call("DEL", desk.lease)
    if holder:
        desk.server.call("SET", desk.lease, holder)

    assert not desk.keeper.keep(desk.slot, "5-1", 3, 0)
    assert desk.stored() == kept


def test_what_is_settled_is_forgotten(desk: Desk) -> None:
    desk.keeper.keep(desk.slot, "5-1", 1, 60_000)
    desk.keeper.drop(desk.slot, "5-1")
    assert desk.look() is None
    assert desk.server.call("EXISTS", desk.record) == 0


def test_the_record_of_another_message_is_not_dropped(desk: Desk) -> None:
    desk.keeper.keep(desk.slot, "5-2", 1, 60_000)
    desk.keeper.drop(desk.slot, "5-1")
    found = desk.look()
    assert found is not None
    assert found.id == "5-2"


def test_each_partition_and_each_group_has_its_own_record(desk: Desk) -> None:
    other = Keeper(desk.keeper.session, "h", "me")
    desk.keeper.keep(desk.slot, "5-1", 1, 0)
    nothing, kept = desk.keeper.look([(desk.topic, 1), desk.slot])
    assert nothing is None
    assert kept is not None
    assert kept.id == "5-1"
    assert other.look([desk.slot]) == [None]
    assert desk.keeper.look([]) == []


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({"attempts": "1"}, None),
        ({"id": "5-1"}, Kept("5-1", 0)),
        ({"id": "5-1", "due_at_ms": "soon"}, Kept("5-1", 0)),
    ],
)
def test_a_damaged_record_stops_nobody(
    desk: Desk, record: dict[str, str], found: Kept | None
) -> None:
    flat = [text for pair in record.items() for text in pair]
    desk.server.call("HSET", desk.record, *flat)
    assert desk.look() == found


def test_a_key_of_another_type_is_no_record(desk: Desk) -> None:
    desk.server.call("SET", desk.record, "text")
    assert desk.look() is None
