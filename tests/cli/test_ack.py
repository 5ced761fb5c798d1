"""mqctl ack, retry, dead: receipts from a pipe and from the command line."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.server import Server
from tests.support.shell import Result, inside, shell

Mqctl = Callable[[str], Result]
STREAM = "stream:topic:t:p:0"
TAKE = "consume t -g g -e --ack manual -o ndjson -q"


@pytest.fixture
def mqctl(redis: Server, capfdbinary: pytest.CaptureFixture[bytes]) -> Mqctl:
    return inside(redis, capfdbinary)


def taken(mqctl: Mqctl, *payloads: str) -> list[dict[str, Any]]:
    """Produce messages and take them with receipts."""
    mqctl(f"produce t {' '.join(payloads)}")
    return [json.loads(line) for line in mqctl(TAKE).out.splitlines()]


def pending(server: Server) -> int:
    return int(server.call("XPENDING", STREAM, "g")[0])


def results(result: Result) -> list[str]:
    return [json.loads(line)["result"] for line in result.out.splitlines()]


def test_a_receipt_settles_its_message_once(redis: Server, mqctl: Mqctl) -> None:
    (message,) = taken(mqctl, "x")
    line = f"ack {message['receipt']} -o ndjson"

    first, second = mqctl(line), mqctl(line)

    assert (first.code, second.code) == (0, 0)
    assert results(first) == ["done"]
    assert results(second) == ["already"]
    assert json.loads(first.out)["receipt"] == message["receipt"]
    assert pending(redis) == 0


@pytest.mark.parametrize("verb", ["ack", "retry", "dead"])
def test_envelopes_from_a_pipe_are_settled(
    redis: Server, mqctl: Mqctl, verb: str
) -> None:
    mqctl("produce t 1 2 3")

    result = shell(f"mqctl {TAKE} | mqctl {verb} -", redis)

    assert (result.code, result.out, result.err) == (0, b"", "mqctl: 3 done\n")
    assert pending(redis) == 0
    left = (
        redis.call("XLEN", "stream:topic:t:dlq"),
        redis.call("ZCARD", "streaming:mq:retry:t"),
    )
    assert left == {"ack": (0, 0), "retry": (0, 3), "dead": (3, 0)}[verb]


def test_bare_receipts_come_from_a_pipe_too(redis: Server, mqctl: Mqctl) -> None:
    found = taken(mqctl, "1", "2")
    text = "\\n".join(one["receipt"] for one in found)

    assert shell(f"printf '\\n{text}\\n' | mqctl ack - -o none", redis).code == 0
    assert pending(redis) == 0


def test_what_was_not_stored_is_not_acknowledged(redis: Server, mqctl: Mqctl) -> None:
    one, two, three = (m["receipt"] for m in taken(mqctl, "1", "2", "3"))
    lines = [
        {"status": "stored", "receipt": one},
        {"status": "failed", "receipt": two},
        {"status": "unknown", "receipt": three},
    ]
    text = "\n".join(map(json.dumps, lines))

    result = shell(f"printf '%s' '{text}' | mqctl ack -", redis)

    assert result.err == "mqctl: 1 done\n"
    assert pending(redis) == 2


def test_the_pipe_that_loses_nothing(redis: Server) -> None:
    shell("seq 500 | mqctl produce t", redis)

    result = shell(
        f"mqctl {TAKE} | mqctl produce u -i ndjson --print ndjson | mqctl ack -", redis
    )

    assert (result.code, result.err) == (0, "mqctl: 500 done\n")
    assert pending(redis) == 0
    assert redis.call("XLEN", "stream:topic:u:p:0") == 500


def test_a_retry_comes_back_after_its_delay_with_the_next_attempt(mqctl: Mqctl) -> None:
    (message,) = taken(mqctl, "x")

    mqctl(f"retry {message['receipt']} --delay 1ms --reason later")
    again = mqctl("consume t -g g -n 1 -q -o ndjson")

    assert message["attempt"] == 1
    assert json.loads(again.out)["attempt"] == 2


def test_a_dead_letter_has_the_reason_given(mqctl: Mqctl) -> None:
    (message,) = taken(mqctl, "x")

    mqctl(f"dead {message['receipt']} --reason 'wrong currency'")
    shown = mqctl("dlq list t --full -o ndjson")

    dead = json.loads(shown.out)["dead"]
    assert "wrong currency" in (dead["reason"], dead["detail"])
    assert dead["group"] == "g"


def test_a_message_that_another_holds_is_lost_and_exit_3(
    redis: Server, mqctl: Mqctl
) -> None:
    (message,) = taken(mqctl, "x")
    redis.call("XCLAIM", STREAM, "g", "other", 0, message["id"])

    result = mqctl(f"ack {message['receipt']} -o ndjson")

    assert result.code == 3
    assert results(result) == ["lost"]
    assert json.loads(result.err)["error"]["code"] == "partial"
    assert pending(redis) == 1


def test_a_line_that_is_no_receipt_stops_after_what_came_before(
    redis: Server, mqctl: Mqctl
) -> None:
    one, two = (m["receipt"] for m in taken(mqctl, "1", "2"))

    result = shell(f"printf '{one}\\nnonsense\\n{two}\\n' | mqctl ack -", redis)

    assert result.code == 65
    assert "line 2: not a receipt: nonsense; before it: 1 done" in result.err
    assert pending(redis) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a":1}', "line 1 has no receipt"),
        ('{"receipt":', "line 1 is not JSON"),
        ("[1]", "line 1: not a receipt"),
        ('{"receipt":"r1:t"}', "not a receipt: r1:t"),
    ],
)
def test_bad_lines_are_named(redis: Server, text: str, said: str) -> None:
    result = shell(f"printf '%s' '{text}' | mqctl ack -", redis)

    assert result.code == 65
    assert said in result.err
    assert result.err.count("\n") == 1


def test_nothing_to_settle_is_a_note(redis: Server) -> None:
    result = shell("mqctl ack - </dev/null", redis)

    assert (result.code, result.err) == (
        0,
        "mqctl: no receipts came: nothing settled\n",
    )
