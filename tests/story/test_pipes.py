"""Consumers in pipes: nothing is lost on the way, whatever happens to the others."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.server import Server
from tests.support.wait import wait_until
from tests.support.worker import (
    CALM,
    QUICK,
    Worker,
    Workers,
    argv,
    mqctl,
    owners,
    pending,
    produce,
    stream,
)


def payloads(server: Server, topic: str) -> list[bytes]:
    return [
        dict(zip(flat[::2], flat[1::2], strict=True))[b"payload"]
        for _, flat in server.call("XRANGE", stream(topic, 0), "-", "+")
    ]


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    try:
        yield read, write
    finally:
        for fd in (read, write):
            try:
                os.close(fd)
            except OSError:
                continue


# -- copying from one topic to another ----------------------------------------


def test_a_pipe_with_receipts_loses_nothing_when_its_middle_is_killed(
    redis: Server, crew: Workers
) -> None:
    numbers = [str(i) for i in range(3000)]
    produce(redis, "A", numbers, "--partitions", "2")

    def copy() -> list[Worker]:
        """Start the three; none of them keeps another's end of a pipe open."""
        with pipe() as (out_a, in_b), pipe() as (out_b, in_c):
            a = crew.consume(
                "A", *QUICK, "-e", "--ack", "manual", "-o", "ndjson", stdout=in_b
            )
            b = crew.start(
                "produce",
                *("B", "-i", "ndjson", "--print", "ndjson", "--batch", "10"),
                stdin=out_a,
                stdout=in_c,
            )
            c = crew.start("ack", "-", stdin=out_b)
        return [a, b, c]

    for _ in range(2):
        a, b, c = copy()
        before = redis.call("XLEN", stream("B", 0))
        wait_until(
            lambda before=before: redis.call("XLEN", stream("B", 0)) > before + 200,
            "some are copied",
        )
        b.kill()
        assert a.wait() == 0
        assert c.wait() in (0, 65)  # its last line may be half a line

    def another() -> bool:
        """Run to the end; what was not settled before must first become claimable."""
        assert [worker.wait(60) for worker in copy()] == [0, 0, 0]
        return pending(redis, "A", 2) == 0

    wait_until(another, "all settled")
    assert {*map(int, payloads(redis, "B"))} == set(range(3000))
    assert pending(redis, "A", 2) == 0


TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
HEADER = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(
    lambda name: not name.startswith("x-") and name != "partitionId"
)
PAYLOAD = st.one_of(
    st.binary(max_size=200),
    st.sampled_from(
        [b"", b"\n", b"\0", b"\xff", "🚀".encode(), b'"', b"a\r\nb", b"x" * 2**20]
    ),
)
MESSAGE = st.tuples(
    st.one_of(st.none(), st.binary(max_size=20)),
    st.dictionaries(HEADER, TEXT, max_size=3),
    PAYLOAD,
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(MESSAGE, min_size=1, max_size=8))
def test_a_copy_keeps_payload_key_and_headers(redis: Server, messages: list) -> None:
    from mqctl.engine.producer import Producer, ProducerOptions
    from mqctl.engine.session import Session
    from mqctl.store.url import parse_url

    redis.call("FLUSHALL")
    session = Session.open(parse_url(redis.url, tls=None))
    producer = Producer(session, "A", ProducerOptions())
    for line, (key, headers, payload) in enumerate(messages, 1):
        producer.add(payload, key, headers, None, 3, line)
    producer.drain()
    session.close()

    quiet = ("-q", "-o", "ndjson")
    out = mqctl(redis, "consume", "A", "-g", "g", "-e", *quiet).stdout
    mqctl(redis, "produce", "B", "-q", "-i", "ndjson", input=out)
    again = mqctl(redis, "consume", "B", "-g", "g", "-e", *quiet).stdout

    kept = ("key", "key_b64", "headers", "payload", "payload_b64")
    first = [{k: r.get(k) for k in kept} for r in map(json.loads, out.splitlines())]
    second = [{k: r.get(k) for k in kept} for r in map(json.loads, again.splitlines())]
    assert first == second
    assert [content(r) for r in first] == [
        (key, headers, payload) for key, headers, payload in messages
    ]


def content(record: dict) -> tuple:
    from base64 import b64decode

    key = record["key"].encode() if record["key"] is not None else None
    if record["key_b64"] is not None:
        key = b64decode(record["key_b64"])
    payload = (
        b64decode(record["payload_b64"])
        if record["payload"] is None
        else record["payload"].encode()
    )
    return key, record["headers"], payload


# -- readers that leave, or do not read ---------------------------------------


def test_head_takes_one_line_and_the_rest_is_there_for_the_next(
    redis: Server, crew: Workers
) -> None:
    numbers = [str(i) for i in range(5000)]
    produce(redis, "t", numbers)
    with pipe() as (read, write):
        worker = crew.consume("t", *CALM, "-q", stdout=write)
        os.close(write)
        first = os.read(read, 10)
        os.close(read)
    assert first.startswith(b"0\n1\n")
    assert worker.wait() == 0
    assert worker.err == ""
    rest = mqctl(redis, "consume", "t", "-g", "g", "-e", "-q")
    assert rest.stdout.split()[-1] == b"4999"
    assert {*rest.stdout.split(), *(b"%d" % i for i in range(3000))} >= {
        n.encode() for n in numbers
    }
    assert pending(redis, "t", 1) == 0


def test_a_shell_pipe_into_head_is_quiet_and_exits_0(redis: Server) -> None:
    produce(redis, "t", [str(i) for i in range(5000)])
    words = " ".join(argv(redis, "consume", "t", "-g", "g", "-q", "--idle-exit", "2s"))
    done = subprocess.run(
        ["bash", "-c", f"{words} | head -1; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.stdout == b"0\n0\n"
    assert done.stderr == b""


def test_a_full_disk_is_74_and_costs_no_message(redis: Server, crew: Workers) -> None:
    produce(redis, "t", ["a", "b", "c"])
    with Path("/dev/full").open("wb") as full:
        worker = crew.consume("t", *CALM, "-e", stdout=full)
    assert worker.wait() == 74
    assert "No space left" in worker.err
    again = mqctl(redis, "consume", "t", "-g", "g", "-e", "-F", "%s %a\n")
    assert again.stdout == b"a 1\nb 1\nc 1\n"


def test_leases_are_kept_while_the_reader_is_slow(redis: Server, crew: Workers) -> None:
    numbers = [f"{i:06d}" + "x" * 1000 for i in range(500)]
    produce(redis, "t", numbers, "--partitions", "2")
    with pipe() as (read, write):
        a = crew.consume("t", *QUICK, "--consumer", "a", "-e", stdout=write)
        os.close(write)
        wait_until(lambda: owners(redis, "t", 2) == ["a", "a"], "both are a's")
        wait_until(lambda: pending(redis, "t", 2) > 100, "a has read")
        b = crew.consume(
            "t", *QUICK, "--consumer", "b", "-p", "0,1", "--max-time", "3s"
        )
        assert b.wait() == 0  # three lives of a lease
        assert owners(redis, "t", 2) == ["a", "a"]
        assert b.lines == []
        with os.fdopen(read, closefd=False) as file:
            lines = file.read().split()
    assert sorted(lines) == numbers
    assert a.wait() == 0


@pytest.mark.parametrize("form", ["raw", "ndjson", "json", "csv"])
def test_a_message_is_with_the_reader_at_once(
    redis: Server, crew: Workers, form: str
) -> None:
    produce(redis, "t", ["first"])
    worker = crew.consume("t", *CALM, "-o", form)
    wait_until(lambda: b"first" in worker.out, "the first")
    produce(redis, "t", ["second"])
    wait_until(lambda: b"second" in worker.out, "the second", timeout=2)
    assert worker.stop() == 0
    if form == "json":
        assert [r["payload"] for r in json.loads(worker.out)] == ["first", "second"]
