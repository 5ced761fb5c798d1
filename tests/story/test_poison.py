"""Messages and handlers that are not what they should be harm only themselves."""

import base64
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.server import Server
from tests.support.wait import wait_until
from tests.support.worker import (
    CALM,
    QUICK,
    Workers,
    dead,
    mqctl,
    pending,
    produce,
    script,
    stream,
)


def add(server: Server, *fields: str | bytes, topic: str = "t") -> bytes:
    """Append an entry field by field, to a topic of one partition."""
    server.call("SADD", "streaming:mq:topics:registry", topic)
    server.call("HSETNX", f"streaming:mq:topic:{topic}:meta", "partitionCount", 1)
    entry_id: bytes = server.call("XADD", stream(topic, 0), "*", *fields)
    return entry_id


def drain(server: Server, *options: str) -> list[str]:
    """Consume all there is, in a group of its own; the rest of a topic goes on."""
    done = mqctl(server, "consume", "t", "-g", "g", "-e", *options)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()


# -- entries ------------------------------------------------------------------


def test_an_entry_that_cannot_be_decoded_is_buried_with_its_bytes(
    redis: Server,
) -> None:
    produce(redis, "t", ["before"])
    add(redis, "payload", "p", "timestamp", "yesterday")
    produce(redis, "t", ["after"])
    assert drain(redis) == ["before", "after"]
    (headers,) = dead(redis, "t")
    assert headers["x-dead-reason"] == "undecodable"
    raw = json.loads(base64.b64decode(headers["x-dead-raw"]))
    assert base64.b64decode(raw["timestamp"]) == b"yesterday"
    assert pending(redis, "t", 1) == 0


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.dictionaries(
        st.one_of(
            st.sampled_from(
                [
                    *(b"payload", b"timestamp", b"retryCount", b"maxRetries", b"key"),
                    *(b"headers", b"originalMessageId", b'"payload"', b"\x03\x01a"),
                ]
            ),
            st.binary(max_size=8),
        ),
        st.one_of(
            st.binary(max_size=30),
            st.sampled_from(
                [
                    *(b"99999999999999999999999", b"-1", b'"x"', b"{", b"[]"),
                    *(b'{"x-payload-ref":"streaming:mq:payload:none"}', b"null"),
                    b'{"a":{"b":1}}',
                    b'{"x-retry-group":"other"}',
                    b'["java.util.HashMap",{"a":"b"}]',
                    b"2026-01-01T00:00:00Z",
                ]
            ),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_no_entry_whatever_stops_a_consumer(
    redis: Server, fields: dict[bytes, bytes]
) -> None:
    from mqctl.core.handler import SUCCESS, Result
    from mqctl.core.message import Delivery
    from mqctl.core.options import ConsumerOptions
    from mqctl.engine.consumer import Consumer
    from mqctl.engine.session import Session
    from mqctl.store.url import parse_url

    class Handler:
        handled = 0

        def __call__(self, _: Delivery) -> Result:
            self.handled += 1
            return SUCCESS

        def drain(self) -> None:
            return

        def kill(self) -> None:
            return

    redis.call("FLUSHALL")
    add(redis, *(part for pair in fields.items() for part in pair))
    add(redis, "payload", "good")
    session = Session.open(parse_url(redis.url, tls=None))
    handler = Handler()
    options = ConsumerOptions(("t",), "g", exit_when_empty=True)
    summary = Consumer(session, options, handler=handler).run()
    session.close()
    assert handler.handled >= 1
    assert handler.handled + summary.dead + summary.skipped == 2
    assert pending(redis, "t", 1) == 0


def test_an_entry_whose_body_is_gone_is_buried(redis: Server) -> None:
    produce(redis, "t", ["x" * 70_000, "small"])
    (ref,) = redis.call("KEYS", "streaming:mq:payload:t:*")
    redis.call("DEL", ref)
    assert drain(redis) == ["small"]
    (headers,) = dead(redis, "t")
    assert headers["x-dead-reason"] == "payload-missing"
    assert headers["x-dead-attempts"] == "0"


def test_a_retry_of_another_group_is_finished_without_handling(redis: Server) -> None:
    add(redis, "payload", "theirs", "headers", '{"x-retry-group":"other"}')
    add(redis, "payload", "ours", "headers", '{"x-retry-group":"g"}')
    add(redis, "payload", "everybody's")
    done = mqctl(redis, "consume", "t", "-g", "g", "-e", "-o", "ndjson")
    payloads = [json.loads(line)["payload"] for line in done.stdout.splitlines()]
    assert payloads == ["ours", "everybody's"]
    summary = json.loads(done.stderr.splitlines()[-1])["summary"]
    assert (summary["received"], summary["skipped"]) == (2, 1)
    assert pending(redis, "t", 1) == 0


@pytest.mark.parametrize(
    ("headers", "reason"),
    [({"a": "b\0c"}, "undecodable"), ({"big": "x" * 200_000}, "too-large")],
)
def test_headers_that_no_environment_can_hold_bury_their_message_alone(
    redis: Server, tmp_path: Path, headers: dict[str, str], reason: str
) -> None:
    add(redis, "payload", "bad", "headers", json.dumps(headers))
    add(redis, "payload", "good")
    log = tmp_path / "log"
    drain(redis, "--", "sh", "-c", f"cat >> {log}")
    assert log.read_text() == "good"
    assert [h["x-dead-reason"] for h in dead(redis, "t")] == [reason]


# -- handlers -----------------------------------------------------------------


def test_a_message_that_kills_its_consumer_ends_in_the_dead_letters(
    redis: Server, crew: Workers, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    killer = script(
        tmp_path / "killer",
        f'read -r line; echo "$line $MQ_ATTEMPT" >> {log}\n'
        '[ "$line" = bad ] && kill -9 $PPID; exit 0',
    )
    produce(redis, "t", ["bad", "good"], "--max-retries", "2")
    deaths = 0
    while deaths < 3:
        worker = crew.consume("t", *QUICK, "--consumer", "a", "--", killer)
        assert worker.wait() == -9
        deaths += 1
    worker = crew.consume("t", *QUICK, "--consumer", "a", "--", killer)
    wait_until(lambda: "good 1" in log.read_text().splitlines(), "the good one")
    wait_until(lambda: pending(redis, "t", 1) == 0, "settled")
    assert worker.stop() == 0
    assert log.read_text().splitlines() == ["bad 1", "bad 2", "bad 3", "good 1"]
    (headers,) = dead(redis, "t")
    assert headers["x-dead-reason"] == "handler-killed"
    assert headers["x-dead-attempts"] == "3"


@pytest.mark.parametrize(
    "command",
    [
        ["no-such-program-at-all"],
        ["/etc/passwd"],
        ["sh", "-c", "exit 127"],
        ["sh", "-c", "exit 126"],
    ],
)
def test_a_handler_that_cannot_start_is_78_and_uses_no_attempt(
    redis: Server, command: list[str]
) -> None:
    produce(redis, "t", ["a", "b"])
    done = mqctl(redis, "consume", "t", "-g", "g", *CALM, "--", *command)
    assert done.returncode == 78
    assert done.stderr.decode().count("mqctl: ") <= 2
    assert "Traceback" not in done.stderr.decode()
    assert drain(redis, "-F", "%s %a\n") == ["a 1", "b 1"]
    assert redis.call("XLEN", stream("t", 0)) == 2
    assert dead(redis, "t") == []


def test_an_interpreter_that_vanishes_is_78_too(redis: Server, tmp_path: Path) -> None:
    produce(redis, "t", ["a"])
    path = tmp_path / "script"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)
    done = mqctl(redis, "consume", "t", "-g", "g", "--", str(path))
    assert done.returncode == 78
    assert "interpreter" in done.stderr.decode()
    assert drain(redis, "-F", "%s %a\n") == ["a 1"]


def test_only_the_first_two_dashes_are_ours(redis: Server, tmp_path: Path) -> None:
    produce(redis, "t", ["a"])
    out = tmp_path / "out"
    shown = script(tmp_path / "shown", f'echo "$*" > {out}')
    drain(redis, "--", shown, "--", "-x", "{partition}")
    assert out.read_text() == "-- -x 0\n"


def test_a_failing_message_holds_nobody_back(redis: Server, tmp_path: Path) -> None:
    produce(redis, "t", [str(i) for i in range(10)])
    log = tmp_path / "log"
    failing = script(
        tmp_path / "failing",
        f'read -r line; echo "$line" >> {log}; [ "$line" != 3 ]',
    )
    drain(redis, "--retry-base", "10m", "--retry-cap", "10m", "--", failing)
    assert log.read_text().split() == [str(i) for i in range(10)]
    assert redis.call("ZCARD", "streaming:mq:retry:t") == 1
    assert pending(redis, "t", 1) == 0


def test_a_handler_of_four_times_claim_idle_runs_once(
    redis: Server, crew: Workers, tmp_path: Path
) -> None:
    produce(redis, "t", ["a"], "--partitions", "2")
    log = tmp_path / "log"
    slow = script(tmp_path / "slow", f"cat >> {log}; sleep 4")
    team = [crew.consume("t", *QUICK, "--", slow) for _ in range(2)]
    wait_until(log.exists, "the handler")
    wait_until(lambda: pending(redis, "t", 2) == 0, "settled")
    assert log.read_text() == "a"
    assert [worker.stop() for worker in team] == [0, 0]
