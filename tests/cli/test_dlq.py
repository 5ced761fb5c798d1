"""mqctl dlq, from the command line: listing, replaying, deleting dead letters."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from mqctl.codecs import native
from mqctl.core.message import Death, Message
from tests.cli.test_admin import keys_of, mqctl, records
from tests.support import golden, ndjson
from tests.support.seed import KEYS, LARGE, Seed, bury, create, seed
from tests.support.server import Server, TestServer
from tests.support.shell import environment, shell
from tests.support.wait import wait_until

Fd = pytest.CaptureFixture[bytes]


@pytest.fixture
def queue(redis: Server) -> Seed:
    return seed(redis)


@pytest.fixture(params=["server", "cluster"])
def either(request: pytest.FixtureRequest) -> Seed:
    """Topic t with two partitions, on a plain server and on a cluster."""
    name = "redis" if request.param == "server" else "cluster_redis"
    server: Server = request.getfixturevalue(name)
    seconds, _ = map(int, server.call("TIME"))
    made = Seed(server, seconds * 1000)
    create(made, "t", 2)
    return made


def messages(server: Server, topic: str, partitions: int = 2) -> list[Message]:
    """Everything in a topic, decoded; bodies that are aside stay there."""
    return [
        native.decode(topic, index, entry_id.decode(), flat)
        for index in range(partitions)
        for entry_id, flat in server.call(
            "XRANGE", KEYS.partition(topic, index), "-", "+"
        )
    ]


def dead_ids(server: Server, topic: str) -> list[str]:
    entries = server.call("XRANGE", KEYS.dlq(topic), "-", "+")
    return [entry_id.decode() for entry_id, _ in entries]


def account(
    capfdbinary: Fd, server: Server, line: str, code: int = 0
) -> dict[str, Any]:
    """Run a replay; return its record."""
    result = mqctl(capfdbinary, server, line)
    assert result.code == code, result.err
    (record,) = map(json.loads, ndjson.lines(result.out))
    return dict(record)


@pytest.mark.parametrize(
    ("name", "line", "code"),
    [
        ("dlq_topics", "dlq topics", 0),
        ("dlq_size", "dlq size orders", 0),
        ("dlq_list", "dlq list orders", 0),
        ("dlq_list_full", "dlq list orders --full", 0),
        ("dlq_replay_all", "dlq replay-all orders", 3),
        ("dlq_replay_all_dry_run", "dlq replay-all orders --dry-run", 3),
    ],
)
def test_the_records_of_a_command_have_the_promised_fields(
    queue: Seed, capfdbinary: Fd, name: str, line: str, code: int
) -> None:
    result = mqctl(capfdbinary, queue.server, line)
    assert result.code == code, result.err
    ndjson.check(name, result.out)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("dlq_show", "dlq show orders {}"),
        ("dlq_replay", "dlq replay orders {}"),
        ("dlq_delete", "dlq delete orders {} --yes"),
    ],
)
def test_the_records_of_a_command_on_one_id_have_the_promised_fields(
    queue: Seed, capfdbinary: Fd, name: str, line: str
) -> None:
    result = mqctl(capfdbinary, queue.server, line.format(queue.id(60)))
    assert result.code == 0, result.err
    ndjson.check(name, result.out)


@pytest.mark.parametrize("output", ["table", "ndjson", "json", "csv", "none"])
@pytest.mark.parametrize(
    "line", ["topics", "size orders", "list orders", "list orders --full"]
)
def test_every_output_format_is_obeyed(
    queue: Seed, capfdbinary: Fd, line: str, output: str
) -> None:
    result = mqctl(capfdbinary, queue.server, f"dlq {line} -o {output}")
    assert result.code == 0, result.err
    assert bool(result.out) is (output != "none")
    if output == "json":
        json.loads(result.out)


def test_show_is_one_document_or_one_table(queue: Seed, capfdbinary: Fd) -> None:
    line = f"dlq show orders {queue.id(60)} -o"
    document = json.loads(mqctl(capfdbinary, queue.server, line, "json").out)
    assert document["dead"]["reason"] == "exhausted"
    assert b"consumer-dead0000" in mqctl(capfdbinary, queue.server, line, "table").out
    assert mqctl(capfdbinary, queue.server, line, "raw").out == b"one\n"
    assert mqctl(capfdbinary, queue.server, "dlq show orders 1-1").code == 4


def test_a_list_can_be_narrowed(queue: Seed, capfdbinary: Fd) -> None:
    def ids(*more: str) -> list[str]:
        found = mqctl(capfdbinary, queue.server, "dlq list orders", *more)
        return [row["id"] for row in records(found)]

    newest_first = [queue.id(minutes) for minutes in (20, 30, 40, 50, 60)]
    assert ids() == newest_first
    assert ids("-n", "2") == newest_first[:2]
    assert ids("--where-reason", "EXH*") == [*newest_first[1:3], newest_first[4]]
    assert ids("--where-reason", "exh") == []
    assert ids("--where-key", "k?") == newest_first[4:]
    assert ids("--since", "45m") == newest_first[:3]
    assert ids("--until", "45m") == newest_first[3:]
    assert ids("--since", "45m", "--until", "-25m") == newest_first[1:3]
    assert ids("--since", f"@{queue.now - 25 * 60_000}") == newest_first[:1]


def test_dead_letters_outlive_their_topic(queue: Seed, capfdbinary: Fd) -> None:
    server = queue.server
    names = [r["topic"] for r in records(mqctl(capfdbinary, server, "dlq topics"))]
    assert names == ["ghost", "orders"]
    assert records(mqctl(capfdbinary, server, "dlq size ghost"))[0]["dead"] == 1
    assert mqctl(capfdbinary, server, "tail ghost --dlq").out == b"boo\n"
    lost = mqctl(capfdbinary, server, "dlq replay-all ghost")
    assert lost.code == 4
    assert "mqctl admin create ghost" in lost.err
    assert server.call("SISMEMBER", KEYS.registry, "ghost") == 0
    moved = account(capfdbinary, server, "dlq replay-all ghost --to ab")
    assert moved["targets"][0]["topic"] == "ab"
    assert messages(server, "ab", 1)[-1].payload == b"boo"


def test_a_replay_starts_over_where_the_message_came_from(
    either: Seed, capfdbinary: Fd
) -> None:
    headers = {"tag": "t", "x-original-timestamp": "2026-01-01T00:00:00Z"}
    bury(either, "t", 2, payload=b"\xff\x00", partition=1, key=b"\xfe", headers=headers)
    done = account(capfdbinary, either.server, "dlq replay-all t")
    assert (done["selected"], done["replayed"], done["deleted"]) == (1, 1, 0)
    (copy,) = messages(either.server, "t")
    assert (copy.partition, copy.key, copy.payload) == (1, b"\xfe", b"\xff\x00")
    assert (copy.retry_count, copy.max_retries) == (0, 3)
    assert copy.headers["tag"] == "t"
    assert copy.headers["x-original-timestamp"] == "2026-01-01T00:00:00Z"
    assert copy.original_id == either.id(3)
    assert (copy.replay_count, copy.retry_group) == (1, "billing")
    assert not any(name.startswith("x-dead-") for name in copy.headers)
    assert len(dead_ids(either.server, "t")) == 1


def test_a_partition_that_is_not_the_keys_own_is_forced(
    either: Seed, capfdbinary: Fd
) -> None:
    bury(either, "t", 3, payload=b"x", partition=0, key=b"a")  # "a" goes to 1
    bury(either, "t", 2, payload=b"y", partition=5, key=b"a")  # 5 is 1 of 2
    account(capfdbinary, either.server, "dlq replay-all t")
    forced, own = messages(either.server, "t")
    assert (forced.partition, forced.headers["x-force-partition-id"]) == (0, "0")
    assert (own.partition, "x-force-partition-id" in own.headers) == (1, False)


def test_a_replay_can_be_for_all_groups_and_into_another_topic(
    either: Seed, capfdbinary: Fd
) -> None:
    create(either, "u", 1)
    bury(either, "t", 2, payload=b"x", partition=1)
    line = "dlq replay-all t --all-groups --to u"
    done = account(capfdbinary, either.server, line)
    target = {"topic": "u", "partition": 0, "group": None, "count": 1}
    assert done["targets"] == [target]
    assert messages(either.server, "u", 1)[0].retry_group is None
    assert mqctl(capfdbinary, either.server, "dlq replay-all t --to v").code == 4


def test_what_was_replayed_is_not_replayed_again_unless_told(
    either: Seed, capfdbinary: Fd
) -> None:
    for minutes in (3, 2):
        bury(either, "t", minutes, payload=b"x")
    assert account(capfdbinary, either.server, "dlq replay-all t")["replayed"] == 2
    again = account(capfdbinary, either.server, "dlq replay-all t")
    assert (again["replayed"], again["skipped_replayed"]) == (0, 2)
    assert len(messages(either.server, "t")) == 2
    forced = account(capfdbinary, either.server, "dlq replay-all t --again")
    assert forced["replayed"] == 2
    rows = records(mqctl(capfdbinary, either.server, "dlq list t"))
    assert [row["replays"] for row in rows] == [2, 2]
    assert all(row["last_replayed_at_ms"] for row in rows)


def test_a_message_replayed_too_often_is_skipped_and_counted(
    either: Seed, capfdbinary: Fd
) -> None:
    for minutes, count in ((4, "2"), (3, "3"), (2, "4")):
        bury(either, "t", minutes, payload=b"x", headers={"x-replay-count": count})
    done = account(capfdbinary, either.server, "dlq replay-all t")
    assert (done["replayed"], done["skipped_limit"]) == (1, 2)
    assert messages(either.server, "t")[0].replay_count == 3
    more = account(capfdbinary, either.server, "dlq replay-all t --max-replays 4")
    assert (more["replayed"], more["skipped_limit"]) == (1, 1)


def test_with_delete_each_dead_letter_is_moved(either: Seed, capfdbinary: Fd) -> None:
    for minutes in (4, 3, 2):
        bury(either, "t", minutes, payload=b"%d" % minutes)
    either.call("HSET", KEYS.replayed("t"), either.id(4), "1:1")
    line = "dlq replay-all t --delete --yes --again"
    done = account(capfdbinary, either.server, line)
    assert (done["replayed"], done["deleted"]) == (3, 3)
    assert dead_ids(either.server, "t") == []
    assert either.call("EXISTS", KEYS.replayed("t")) == 0
    payloads = sorted(m.payload for m in messages(either.server, "t"))
    assert payloads == [b"2", b"3", b"4"]


def test_a_move_needs_a_yes_and_shows_its_plan(either: Seed, capfdbinary: Fd) -> None:
    bury(either, "t", 2, payload=b"x")
    before = keys_of(either.server)
    refused = mqctl(capfdbinary, either.server, "dlq replay-all t --delete")
    assert (refused.code, refused.out) == (6, b"")
    plan = json.loads(refused.err.splitlines()[0])
    assert (plan["dry_run"], plan["selected"], plan["replayed"]) == (True, 1, 0)
    assert account(capfdbinary, either.server, "dlq replay-all t --dry-run") == plan
    assert keys_of(either.server) == before


def test_a_large_body_is_stored_aside_again(either: Seed, capfdbinary: Fd) -> None:
    bury(either, "t", 3, payload=LARGE)
    binary = b"\xff" * 70_000
    bury(either, "t", 2, payload=binary, partition=1, codec="kryo5")
    account(capfdbinary, either.server, "dlq replay-all t")
    copies = messages(either.server, "t")
    assert all(copy.payload_ref for copy in copies)
    refs = {copy.payload_ref.encode() for copy in copies if copy.payload_ref}
    assert set(either.call("SMEMBERS", KEYS.payload_index("t"))) == refs
    assert set(either.call("ZRANGE", KEYS.payload_times, 0, -1)) == refs
    shown = mqctl(capfdbinary, either.server, "admin recent t -o raw -n 2")
    assert sorted(shown.out.split(b"\n")) == sorted([LARGE, binary, b""])


def test_a_body_that_is_gone_fails_and_is_left_alone(
    either: Seed, capfdbinary: Fd
) -> None:
    missing = {"x-payload-missing": "true"}
    gone = Death("payload-missing", attempts=1)
    bury(either, "t", 4, payload=b"", headers=missing, death=gone)
    raw = Death("undecodable", attempts=1, raw="e30=")
    bury(either, "t", 3, payload=b"", death=raw)
    bury(either, "t", 2, payload=b"fine")
    line = "dlq replay-all t --delete --yes"
    done = account(capfdbinary, either.server, line, code=3)
    assert (done["replayed"], done["failed"]) == (1, 2)
    assert dead_ids(either.server, "t") == [either.id(4), either.id(3)]


def test_a_run_can_be_bounded_and_says_what_is_left(
    either: Seed, capfdbinary: Fd
) -> None:
    for minutes in range(9, 1, -1):
        reason = "exhausted" if minutes % 2 else "rejected"
        death = Death(reason, attempts=1, group="g")
        bury(either, "t", minutes, payload=b"%d" % minutes, death=death)
    result = mqctl(
        capfdbinary, either.server, "dlq replay-all t --max 2 --where-reason REJ*"
    )
    done = json.loads(result.out)
    assert (done["selected"], done["replayed"]) == (2, 2)
    assert done["reasons"] == {"rejected": 2}
    assert done["ids"] == [either.id(8), either.id(6)]
    assert "left" in result.err or "not looked at" in result.err
    rest = account(capfdbinary, either.server, "dlq replay-all t")
    assert (rest["replayed"], rest["skipped_replayed"]) == (6, 2)


def test_single_dead_letters_are_replayed_by_id(either: Seed, capfdbinary: Fd) -> None:
    for minutes in (3, 2):
        bury(either, "t", minutes, payload=b"%d" % minutes)
    line = f"dlq replay t {either.id(3)} 1-1 {either.id(3)}"
    done = account(capfdbinary, either.server, line, code=3)
    assert (done["selected"], done["replayed"], done["failed"]) == (2, 1, 1)
    assert [m.payload for m in messages(either.server, "t")] == [b"3"]
    assert mqctl(capfdbinary, either.server, "dlq replay t 1-1").code == 4


def test_dead_letters_are_deleted_by_id(either: Seed, capfdbinary: Fd) -> None:
    for minutes in (4, 3, 2):
        bury(either, "t", minutes, payload=b"x")
    either.call("HSET", KEYS.replayed("t"), either.id(3), "1:1", either.id(2), "1:1")
    line = f"dlq delete t {either.id(4)} {either.id(3)}"
    assert mqctl(capfdbinary, either.server, line).code == 6
    done = account(capfdbinary, either.server, f"{line} 1-1 --yes", code=3)
    assert (done["selected"], done["deleted"], done["not_found"]) == (3, 2, 1)
    assert dead_ids(either.server, "t") == [either.id(2)]
    assert either.call("HKEYS", KEYS.replayed("t")) == [either.id(2).encode()]
    assert mqctl(capfdbinary, either.server, "dlq delete t 1-1 --yes").code == 4


def test_what_dies_during_a_replay_is_not_replayed_by_it(redis: Server) -> None:
    """A first replay whose copies die at once would never end otherwise."""
    from mqctl.core.errors import Interrupted
    from mqctl.engine.dead_letters_replay import Replay, ReplayOptions
    from mqctl.engine.session import Session
    from mqctl.store.url import parse_url

    made = Seed(redis, 1_700_000_000_000)
    create(made, "t", 2)
    for minutes in (4, 3, 2):
        bury(made, "t", minutes, payload=b"x")
    session = Session.open(parse_url(redis.url, tls=None))
    rounds = 0

    def pause(_: float) -> None:
        nonlocal rounds
        rounds += 1
        if rounds > 50:
            raise Interrupted("it does not end")
        bury(made, "t", -rounds, payload=b"later")

    try:
        report = Replay(session, "t", ReplayOptions(rate=10.0), pause).all()
    finally:
        session.close()
    assert (report.replayed, report.left) == (3, 0)


@pytest.mark.parametrize("recording", ["dlq_kryo5", "dlq_json", "dlq_string"])
def test_what_java_buried_is_replayed_with_the_bytes_that_are_listed(
    redis: Server, capfdbinary: Fd, recording: str
) -> None:
    golden.restore(redis.call, golden.load(recording))
    (topic,) = [
        row["topic"] for row in records(mqctl(capfdbinary, redis, "dlq topics"))
    ]
    letters = records(mqctl(capfdbinary, redis, f"dlq list {topic} --full -n 0"))
    count = records(mqctl(capfdbinary, redis, f"admin partitions {topic}"))[0]
    before = {row["id"] for row in _all(capfdbinary, redis, topic)}
    done = account(capfdbinary, redis, f"dlq replay-all {topic}")
    assert done["replayed"] == len(letters) > 0
    copies = [r for r in _all(capfdbinary, redis, topic) if r["id"] not in before]
    assert Counter(map(_body, copies)) == Counter(map(_body, letters))
    assert all(copy["partition"] < count["partitions"] for copy in copies)
    assert all(target["group"] is None for target in done["targets"])


def _all(capfdbinary: Fd, server: Server, topic: str) -> list[Any]:
    return records(mqctl(capfdbinary, server, f"admin recent {topic} -n 0"))


def _body(record: dict[str, Any]) -> str:
    named = {k: v for k, v in record.items() if k.startswith(("payload", "key"))}
    return json.dumps([named, record["headers"].get("trace")], sort_keys=True)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_replay_between_two_messages_and_a_rerun_finishes_it(
    redis: Server, capfdbinary: Fd, sign: signal.Signals
) -> None:
    made = Seed(redis, 1_700_000_000_000)
    create(made, "t", 2)
    for minutes in range(40, 0, -1):
        bury(made, "t", minutes, payload=b"%d" % minutes)
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "mqctl", "dlq", "replay-all", "t"),
            *("--rate", "20/s", "--delete", "--yes", "-o", "ndjson"),
        ],
        env=environment(redis.url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        wait_until(lambda: len(messages(redis, "t")) > 3, "a few copies")
        os.kill(process.pid, sign)
        out, err = process.communicate(timeout=20)
    expected = -signal.SIGINT if sign == signal.SIGINT else 128 + sign
    assert process.returncode == expected
    done = json.loads(out)
    assert 3 < done["replayed"] == done["deleted"] < 40
    assert f"{40 - done['replayed']} dead letters were not looked at" in err.decode()
    assert b"Traceback" not in err
    rest = account(capfdbinary, redis, "dlq replay-all t --delete --yes")
    assert rest["replayed"] == 40 - done["replayed"]
    found = sorted(int(m.payload) for m in messages(redis, "t"))
    assert found == list(range(1, 41))


def test_two_replays_at_once_copy_each_dead_letter_once(redis: Server) -> None:
    made = Seed(redis, 1_700_000_000_000)
    create(made, "t", 2)
    for minutes in range(300, 0, -1):
        bury(made, "t", minutes, payload=b"%d" % minutes)
    line = "mqctl dlq replay-all t & mqctl dlq replay-all t & wait"
    done = shell(line, redis)
    assert done.code == 0, done.err
    accounts = [json.loads(row) for row in done.out.splitlines()]
    assert sum(one["replayed"] for one in accounts) == 300
    assert len(messages(redis, "t")) == 300


def test_a_full_server_fails_the_rest_and_says_so(
    redis: Server, capfdbinary: Fd
) -> None:
    made = Seed(redis, 1_700_000_000_000)
    create(made, "t", 2)
    bury(made, "t", 2, payload=b"x")
    redis.call("CONFIG", "SET", "maxmemory", 1)
    try:
        result = mqctl(capfdbinary, redis, "dlq replay-all t")
    finally:
        redis.call("CONFIG", "SET", "maxmemory", 0)
    assert result.code == 3
    assert "OOM" in result.err
    assert json.loads(result.out)["failed"] == 1
    assert dead_ids(redis, "t") == [made.id(2)]


@pytest.mark.cluster
def test_a_tagged_topic_is_moved_by_one_script_on_a_cluster(
    cluster_redis: TestServer, capfdbinary: Fd
) -> None:
    made = Seed(cluster_redis, 1_700_000_000_000)
    create(made, "{t}", 2)
    bury(made, "{t}", 2, payload=b"x", partition=1)
    line = "dlq replay-all {t} --delete --yes"
    assert account(capfdbinary, cluster_redis, line)["deleted"] == 1
    (copy,) = messages(cluster_redis, "{t}")
    assert (copy.partition, copy.payload) == (1, b"x")
    assert dead_ids(cluster_redis, "{t}") == []
