import json
from collections.abc import Iterator

import pytest

from mqctl.codecs import dead_letter
from mqctl.core.message import DeadLetter, Delivery
from mqctl.engine.assigned import Assigned
from mqctl.engine.burial import Burial
from mqctl.engine.claims import Claimed
from mqctl.engine.intake import Intake
from tests.support.server import Server
from tests.support.sessions import session
from tests.support.worker import stream


@pytest.fixture
def intake(redis: Server) -> Iterator[Intake]:
    with session(redis) as opened:
        yield Intake(opened, "g", "c", 5, Burial(opened, "string"))


@pytest.fixture
def part() -> Assigned:
    return Assigned(("t", 0), stream("t", 0), held_at=0.0)


def entry(number: int, deliveries: int = 1, **fields: str) -> Claimed:
    flat = [text.encode() for pair in fields.items() for text in pair]
    return Claimed(f"{number}-0", deliveries, flat)


def take(intake: Intake, part: Assigned, *entries: Claimed) -> list[Delivery]:
    return intake.take(part, list(entries), strangers=False)


def letter(part: Assigned) -> DeadLetter:
    (step,) = part.steps
    assert step.kind == "dead"
    return dead_letter.decode("t", "9-9", step.fields)


def test_entries_become_deliveries_in_their_order(
    intake: Intake, part: Assigned
) -> None:
    found = take(intake, part, entry(1, payload="a"), entry(2, payload="b", key="k"))
    assert [(d.message.id, d.message.payload) for d in found] == [
        ("1-0", b"a"),
        ("2-0", b"b"),
    ]
    assert {(d.group, d.consumer, d.deliveries) for d in found} == {("g", "c", 1)}
    assert found[1].message.key == b"k"
    assert not part.acks
    assert not part.steps


@pytest.mark.parametrize(
    ("retry_count", "deliveries", "attempt"),
    [(0, 1, 1), (2, 1, 3), (0, 3, 3), (1, 2, 3)],
)
def test_the_attempt_counts_retries_and_starts_that_never_ended(
    intake: Intake, part: Assigned, retry_count: int, deliveries: int, attempt: int
) -> None:
    given = entry(1, deliveries, payload="a", retryCount=str(retry_count))
    (found,) = take(intake, part, given)
    assert (found.attempt, found.limit) == (attempt, 3)


def test_the_limit_is_the_lower_of_the_messages_and_ours(
    intake: Intake, part: Assigned
) -> None:
    low, high = take(intake, part, entry(1, maxRetries="1"), entry(2, maxRetries="50"))
    assert (low.limit, high.limit) == (1, 5)


def test_too_many_starts_that_never_ended_bury_it(
    intake: Intake, part: Assigned
) -> None:
    assert take(intake, part, entry(1, 5, payload="a")) == []
    death = letter(part).death
    assert (death.reason, death.attempts) == ("handler-killed", 4)


def test_the_last_retry_of_all_is_handed_out(intake: Intake, part: Assigned) -> None:
    (found,) = take(intake, part, entry(1, payload="a", retryCount="3"))
    assert (found.attempt, found.limit) == (4, 3)


def test_an_exhausted_retry_that_was_never_started_is_handed_out(
    intake: Intake, part: Assigned
) -> None:
    (found,) = take(intake, part, entry(1, payload="a", retryCount="9"))
    assert found.attempt == 10


def test_what_is_addressed_to_another_group_is_acknowledged(
    intake: Intake, part: Assigned
) -> None:
    headers = json.dumps({"x-retry-group": "other"})
    ours = json.dumps({"x-retry-group": "g"})
    found = take(intake, part, entry(1, headers=headers), entry(2, headers=ours))
    assert [d.message.id for d in found] == ["2-0"]
    assert part.acks == ["1-0"]
    assert intake.skipped == 1


def test_what_cannot_be_decoded_is_buried_with_its_bytes(
    intake: Intake, part: Assigned
) -> None:
    found = take(
        intake, part, entry(1, payload="p", timestamp="never"), entry(2, payload="q")
    )
    assert [d.message.id for d in found] == ["2-0"]
    death = letter(part).death
    assert (death.reason, death.group, death.consumer) == ("undecodable", "g", "c")
    assert death.raw is not None


def test_a_body_that_is_there_is_loaded_and_one_that_is_gone_buries_its_message(
    redis: Server, intake: Intake, part: Assigned
) -> None:
    def headers(ref: str) -> str:
        return json.dumps({"x-payload-hash-ref": ref, "x-payload-storage": "hash"})

    redis.call("SET", "streaming:mq:payload:t:p:0:1", '"body"')
    found = take(
        intake,
        part,
        entry(1, headers=headers("streaming:mq:payload:t:p:0:1")),
        entry(2, headers=headers("streaming:mq:payload:t:p:0:2")),
    )
    assert [(d.message.id, d.message.payload) for d in found] == [("1-0", b"body")]
    assert letter(part).death.reason == "payload-missing"


def test_a_reference_to_any_other_key_is_never_read(
    redis: Server, intake: Intake, part: Assigned
) -> None:
    redis.call("SET", "secret", '"body"')
    headers = json.dumps({"x-payload-hash-ref": "secret", "x-payload-storage": "hash"})
    assert take(intake, part, entry(1, headers=headers)) == []
    assert letter(part).death.reason == "payload-missing"
