"""mqctl admin, from the command line, on a queue whose numbers are known."""

import json
import socket
from typing import Any

import pytest

from mqctl.cli.main import run
from mqctl.core.assignment import Member, subscription_id
from tests.support import ndjson
from tests.support.seed import (
    GONE,
    KEYS,
    LIVE,
    MINUTE,
    Seed,
    append,
    append_large,
    create,
    seed,
)
from tests.support.server import Server, TestServer, short_directory, start_server
from tests.support.shell import Result

Fd = pytest.CaptureFixture[bytes]


@pytest.fixture
def queue(redis: Server) -> Seed:
    return seed(redis)


def mqctl(capfdbinary: Fd, server: Server, line: str, *more: str) -> Result:
    """Run a command line in this process."""
    capfdbinary.readouterr()
    group, name, *words = [*line.split(), *more]
    code = run([group, name, "-u", server.url, *words])
    out, err = capfdbinary.readouterr()
    return Result(code, out, err.decode())


def records(result: Result) -> list[Any]:
    assert result.code == 0, result.err
    return [json.loads(line) for line in ndjson.lines(result.out)]


def keys_of(server: Server) -> set[bytes]:
    return set(server.call("KEYS", "*"))


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("admin_topics", "admin topics"),
        ("admin_exists", "admin exists orders billing"),
        ("admin_info", "admin info orders"),
        ("admin_info_partitions", "admin info orders --partitions"),
        ("admin_create", "admin create new --partitions 3"),
        ("admin_partitions", "admin partitions orders"),
        ("admin_route", "admin route orders a customer-17 zwölf"),
        ("admin_groups", "admin groups orders"),
        ("admin_group_stats", "admin group-stats orders billing"),
        ("admin_consumers", "admin consumers orders billing"),
        ("admin_leases", "admin leases"),
        ("admin_pending", "admin pending orders billing"),
        ("admin_pending_count", "admin pending orders billing --count"),
        ("admin_retries", "admin retries orders"),
        ("admin_delete", "admin delete orders --yes"),
        ("admin_create_group", "admin create-group orders new --from end"),
        ("admin_delete_group", "admin delete-group orders audit --yes"),
        ("admin_recent", "admin recent orders -n 2"),
        ("admin_range", "admin range orders 0 start end -n 2"),
    ],
)
def test_the_records_of_a_command_have_the_promised_fields(
    queue: Seed, capfdbinary: Fd, name: str, line: str
) -> None:
    result = mqctl(capfdbinary, queue.server, line)
    assert result.code == 0, result.err
    if name == "admin_recent":  # a large body belongs in no golden
        result = Result(0, result.out.replace(b"x" * 70_000, b"x"), "")
    ndjson.check(name, result.out)


def test_get_prints_the_envelope(queue: Seed, capfdbinary: Fd) -> None:
    result = mqctl(capfdbinary, queue.server, f"admin get orders {queue.id(50)}")
    ndjson.check("admin_get", result.out)


@pytest.mark.parametrize("output", ["table", "ndjson", "json", "csv", "none"])
@pytest.mark.parametrize(
    "line",
    [
        "admin topics",
        "admin info orders",
        "admin group-stats orders billing",
        "admin delete orders --dry-run",
        "admin recent orders",
    ],
)
def test_every_output_format_is_obeyed(
    queue: Seed, capfdbinary: Fd, line: str, output: str
) -> None:
    result = mqctl(capfdbinary, queue.server, line, "-o", output)
    assert result.code == 0, result.err
    assert bool(result.out) is (output != "none")
    if output == "json":
        json.loads(result.out)
    if output == "ndjson":
        assert all(map(json.loads, ndjson.lines(result.out)))


@pytest.mark.parametrize(
    "line",
    [
        "admin info order",
        "admin groups order",
        "admin partitions order",
        "admin delete order --yes",
        "admin recent order",
        "admin retries order",
        "admin create-group order g",
        "admin leases order",
        "admin route order key",
        "dlq list order",
        "dlq size order",
        "dlq replay-all order",
        "tail order",
    ],
)
def test_an_unknown_topic_is_named_with_its_neighbour_and_nothing_is_created(
    queue: Seed, capfdbinary: Fd, line: str
) -> None:
    before = keys_of(queue.server)
    result = mqctl(capfdbinary, queue.server, line)
    assert result.code == 4
    assert "did you mean orders?" in result.err
    assert keys_of(queue.server) == before


def test_an_unknown_group_is_named_with_its_neighbour(
    queue: Seed, capfdbinary: Fd
) -> None:
    for command in ("group-stats", "pending", "consumers", "delete-group"):
        result = mqctl(capfdbinary, queue.server, f"admin {command} orders biling")
        assert result.code == 4
        assert "did you mean billing?" in result.err


def test_exists_answers_by_its_exit_code_too(queue: Seed, capfdbinary: Fd) -> None:
    assert mqctl(capfdbinary, queue.server, "admin exists orders").code == 0
    assert mqctl(capfdbinary, queue.server, "admin exists orders billing").code == 0
    result = mqctl(capfdbinary, queue.server, "admin exists orders nobody")
    assert result.code == 4
    assert json.loads(result.out)["exists"] is False
    assert mqctl(capfdbinary, queue.server, "admin exists nothing").code == 4


def test_a_topic_never_written_and_one_trimmed_to_nothing_show_zeros(
    redis: Server, capfdbinary: Fd
) -> None:
    made = Seed(redis, 1_700_000_000_000)
    create(made, "never", 2)
    create(made, "trimmed", 1)
    append(made, "trimmed", 0, 1, b"x")
    redis.call("XGROUP", "CREATE", KEYS.partition("trimmed", 0), "g", "0")
    redis.call("XTRIM", KEYS.partition("trimmed", 0), "MAXLEN", 0)
    never, trimmed = (
        records(mqctl(capfdbinary, redis, f"admin info {topic}"))[0]
        for topic in ("never", "trimmed")
    )
    assert (never["length"], never["entries_added"], never["lag"]) == (0, 0, 0)
    assert (never["first_id"], never["memory_bytes"]) == (None, 0)
    assert (trimmed["length"], trimmed["entries_added"]) == (0, 1)
    assert (trimmed["groups"], trimmed["lag"], trimmed["last_id"]) == (1, 0, None)


def test_lag_is_null_where_the_server_cannot_say_and_zero_only_when_it_is(
    redis: Server, capfdbinary: Fd
) -> None:
    made = Seed(redis, 1_700_000_000_000)
    create(made, "t", 1)
    for minutes in (5, 4, 3, 2):
        append(made, "t", 0, minutes, b"x")
    stream = KEYS.partition("t", 0)
    redis.call("XGROUP", "CREATE", stream, "all", "0")
    redis.call("XGROUP", "CREATE", stream, "middle", made.id(4))
    redis.call("XGROUP", "CREATE", stream, "done", "$")
    rows = records(mqctl(capfdbinary, redis, "admin groups t"))
    assert {row["group"]: row["lag"] for row in rows} == {
        "all": 4,
        "middle": None,
        "done": 0,
    }
    assert {row["group"]: row["lag_ms"] > 0 for row in rows} == {
        "all": True,
        "middle": True,
        "done": False,
    }
    assert records(mqctl(capfdbinary, redis, "admin info t"))[0]["lag"] is None


def test_what_was_trimmed_unread_is_not_lag(redis: Server, capfdbinary: Fd) -> None:
    made = Seed(redis, 1_700_000_000_000)
    create(made, "t", 1)
    for minutes in range(10, 0, -1):
        append(made, "t", 0, minutes, b"x")
    stream = KEYS.partition("t", 0)
    redis.call("XGROUP", "CREATE", stream, "g", "0")
    redis.call("XREADGROUP", "GROUP", "g", "c", "COUNT", 2, "STREAMS", stream, ">")
    redis.call("XTRIM", stream, "MAXLEN", 3)
    (row,) = records(mqctl(capfdbinary, redis, "admin groups t"))
    assert (row["lag"], row["pending"]) == (3, 2)
    rows = records(mqctl(capfdbinary, redis, "admin pending t g"))
    assert [row["state"] for row in rows] == ["trimmed", "trimmed"]


def test_lag_ms_is_the_age_of_the_oldest_undelivered_entry(
    queue: Seed, capfdbinary: Fd
) -> None:
    rows = records(mqctl(capfdbinary, queue.server, "admin group-stats orders billing"))
    assert 10 * MINUTE <= rows[0]["lag_ms"] < 11 * MINUTE
    assert rows[1]["lag_ms"] == 0


def test_pending_entries_are_paged_without_a_cap_and_sorted_over_all_of_them(
    redis: Server, capfdbinary: Fd
) -> None:
    made = Seed(redis, 1_700_000_000_000)
    create(made, "t", 1)
    stream = KEYS.partition("t", 0)
    add = "redis.call('XADD', KEYS[1], ARGV[1] .. '-' .. i, 'payload', i)"
    redis.call("EVAL", f"for i = 1, 2100 do {add} end", 1, stream, made.now)
    redis.call("XGROUP", "CREATE", stream, "g", "0")
    redis.call("XREADGROUP", "GROUP", "g", "c", "COUNT", 2100, "STREAMS", stream, ">")
    oldest = f"{made.now}-2100"
    redis.call(
        *("XCLAIM", stream, "g", "c", 0, oldest, "IDLE", 500_000, "RETRYCOUNT", 7),
        "JUSTID",
    )
    (count,) = records(mqctl(capfdbinary, redis, "admin pending t g --count"))
    assert count["pending"] == 2100
    assert len(records(mqctl(capfdbinary, redis, "admin pending t g -n 0"))) == 2100
    for sort in ("idle", "deliveries", "id"):
        rows = records(
            mqctl(capfdbinary, redis, f"admin pending t g -n 1 --sort {sort}")
        )
        assert [row["id"] for row in rows] == [oldest]
    line = "admin pending t g -n 2 --sort id --asc"
    rows = records(mqctl(capfdbinary, redis, line))
    assert [row["id"] for row in rows] == [f"{made.now}-1", f"{made.now}-2"]


def test_pending_can_be_narrowed_by_idle_time_and_consumer(
    queue: Seed, capfdbinary: Fd
) -> None:
    line = "admin pending orders billing"
    idle = records(mqctl(capfdbinary, queue.server, f"{line} --min-idle 25m"))
    assert [row["id"] for row in idle] == [queue.id(30)]
    held = records(mqctl(capfdbinary, queue.server, f"{line} --consumer {LIVE}"))
    assert held == []
    counted = f"{line} --count --consumer {GONE} --min-idle 10m"
    assert records(mqctl(capfdbinary, queue.server, counted))[0]["pending"] == 2


def test_an_entry_given_back_is_idle_since_then_and_not_for_ages(
    redis: Server, capfdbinary: Fd
) -> None:
    create(Seed(redis, 0), "t", 1)
    stream = KEYS.partition("t", 0)
    entry = redis.call("XADD", stream, "*", "payload", "x")
    redis.call("XGROUP", "CREATE", stream, "g", "0")
    redis.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", stream, ">")
    redis.call(
        *("XCLAIM", stream, "g", "c", 0, entry, "IDLE", 1_000_000_000),
        *("RETRYCOUNT", 1, "JUSTID"),
    )
    (row,) = records(mqctl(capfdbinary, redis, "admin pending t g"))
    assert row["idle_ms"] < 60_000
    assert records(mqctl(capfdbinary, redis, "admin pending t g --min-idle 5m")) == []


def test_a_pending_large_message_has_the_size_of_its_body(
    redis: Server, capfdbinary: Fd
) -> None:
    made = Seed(redis, 1_700_000_000_000)
    create(made, "t", 1)
    append_large(made, "t", 0, 1)
    stream = KEYS.partition("t", 0)
    redis.call("XGROUP", "CREATE", stream, "g", "0")
    redis.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", stream, ">")
    (row,) = records(mqctl(capfdbinary, redis, "admin pending t g"))
    assert (row["payload_bytes"], row["attempt"], row["state"]) == (70_000, 1, "ok")


def test_a_lease_without_a_ttl_is_called_stuck(queue: Seed, capfdbinary: Fd) -> None:
    queue.call("SET", KEYS.lease("orders", "audit", 0), "java-1")
    rows = records(mqctl(capfdbinary, queue.server, "admin leases orders audit"))
    assert rows == [
        {
            "topic": "orders",
            "group": "audit",
            "partition": 0,
            "owner": "java-1",
            "owner_kind": "other",
            "ttl_ms": None,
            "stuck": True,
        }
    ]


def test_create_is_repeatable_but_not_with_another_count(
    redis: Server, capfdbinary: Fd
) -> None:
    line = "admin create t --partitions"
    assert records(mqctl(capfdbinary, redis, line, "3"))[0]["created"] == 1
    again = mqctl(capfdbinary, redis, line, "3")
    assert records(again)[0]["created"] == 0
    assert "exists already" in again.err
    assert mqctl(capfdbinary, redis, line, "4").code == 6
    assert mqctl(capfdbinary, redis, line, "0").code == 2
    streams = redis.call("SMEMBERS", KEYS.partitions("t"))
    assert {s.decode() for s in streams} == {KEYS.partition("t", i) for i in range(3)}


@pytest.mark.parametrize(
    ("position", "delivered"),
    [
        ("start", [4, 2]),
        ("end", [0, 0]),
        ("@MOMENT", [1, 1]),
        ("-17m", [1, 1]),
        ("last:2", [1, 1]),
        ("last:3", [2, 1]),
        ("last:0", [0, 0]),
    ],
)
def test_a_group_begins_where_it_is_told(
    queue: Seed, capfdbinary: Fd, position: str, delivered: list[int]
) -> None:
    moment = position.replace("MOMENT", str(queue.now - 15 * MINUTE))
    line = "admin create-group orders new --from"
    assert mqctl(capfdbinary, queue.server, line, moment).code == 0
    counts: list[int] = []
    for index in (0, 1):
        stream = KEYS.partition("orders", index)
        queue.call("XREADGROUP", "GROUP", "new", "c", "STREAMS", stream, ">")
        counts.append(queue.call("XPENDING", stream, "new")[0])
    assert counts == delivered


def test_a_group_that_exists_is_not_made_again(queue: Seed, capfdbinary: Fd) -> None:
    result = mqctl(capfdbinary, queue.server, "admin create-group orders billing")
    assert result.code == 6
    late = mqctl(capfdbinary, queue.server, "admin create-group orders late")
    assert records(late)[0]["created"] == 1
    assert mqctl(capfdbinary, queue.server, "admin create-group orders a:b").code == 2


def test_a_running_group_is_not_deleted_unless_forced(
    queue: Seed, capfdbinary: Fd
) -> None:
    line = "admin delete-group orders billing --yes"
    result = mqctl(capfdbinary, queue.server, line)
    assert result.code == 6
    assert "running consumers" in result.err
    (done,) = records(mqctl(capfdbinary, queue.server, line, "--force"))
    assert (done["pending"], done["retries"], done["deleted"]) == (2, 2, 2)
    left = {key for key in keys_of(queue.server) if b"billing" in key}
    assert left == set()
    assert queue.call("HGET", KEYS.commit("orders", 0), "billing") is None
    member = Member(LIVE, subscription_id(["orders"]), 1).format()
    assert queue.call("ZSCORE", KEYS.members("billing"), member) is None


@pytest.mark.parametrize("line", ["delete orders", "delete-group orders audit"])
def test_nothing_is_destroyed_without_a_yes(
    queue: Seed, capfdbinary: Fd, line: str
) -> None:
    before = keys_of(queue.server)
    refused = mqctl(capfdbinary, queue.server, f"admin {line}")
    assert refused.code == 6
    assert refused.out == b""
    plan = json.loads(refused.err.splitlines()[0])
    assert plan["dry_run"] is True
    shown = mqctl(capfdbinary, queue.server, f"admin {line} --dry-run")
    assert records(shown) == [plan]
    assert keys_of(queue.server) == before


def _litter(made: Seed, topic: str) -> None:
    """Leave keys of a topic that no index lists."""
    made.call("SADD", KEYS.acks(topic, 0, "1-1"), "g")
    made.call("SET", KEYS.lease(topic, "long-gone", 0), "c", "PX", 60_000)
    made.call("SET", KEYS.payload(topic, 0, "lost"), '"x"')
    made.call("HSET", KEYS.retry_item(topic, "lost"), "topic", topic)
    made.call("HSET", KEYS.commit(topic, 0), "g", "1-1")
    made.call("HSET", KEYS.acked(topic, 0), "g", "1 c")
    made.call("HSET", KEYS.replayed(topic), "1-1", "1:1")
    made.call("XADD", KEYS.dlq(topic), "*", "payload", "x")


AWKWARD = ["a*", "ab", "a?", "a[b]", "a", "a:p:0", "a:b", "a:p:0:p:1", "\\a", "a b"]


@pytest.mark.parametrize("topic", AWKWARD)
def test_delete_removes_what_the_topic_owns_and_nothing_else(
    redis: Server, capfdbinary: Fd, topic: str
) -> None:
    made = Seed(redis, 1_700_000_000_000)
    owned: dict[str, set[bytes]] = {}
    for name in AWKWARD:
        before = keys_of(redis)
        create(made, name, 2)
        append(made, name, 1, 5, b"x")
        append_large(made, name, 0, 4)
        _litter(made, name)
        redis.call("SET", name, "a key of somebody else")
        owned[name] = keys_of(redis) - before - {name.encode()}
    redis.call("ZADD", KEYS.members("g"), 1, "1:-:c")
    shared = {KEYS.registry.encode(), KEYS.payload_times.encode()}
    before = keys_of(redis)
    result = mqctl(capfdbinary, redis, "admin delete --yes", topic)
    assert result.code == 0, result.err
    assert before - keys_of(redis) == owned[topic] - shared
    assert json.loads(result.out)["deleted_keys"] == len(owned[topic] - shared)
    names = {name.decode() for name in redis.call("SMEMBERS", KEYS.registry)}
    assert names == set(AWKWARD) - {topic}
    bodies = redis.call("ZRANGE", KEYS.payload_times, 0, -1)
    assert len(bodies) == len(AWKWARD) - 1


def test_a_lease_that_reads_two_ways_stays_with_the_topic_whose_group_it_names(
    redis: Server, capfdbinary: Fd
) -> None:
    made = Seed(redis, 1_700_000_000_000)
    create(made, "a", 1)
    create(made, "a:b", 1)
    append(made, "a:b", 0, 1, b"x")
    redis.call("XGROUP", "CREATE", KEYS.partition("a:b", 0), "c", "0")
    lease = KEYS.lease("a:b", "c", 0)
    redis.call("SET", lease, "owner")
    assert mqctl(capfdbinary, redis, "admin delete a --yes").code == 0
    assert redis.call("GET", lease) == b"owner"


def test_an_interrupted_deletion_can_be_run_again(queue: Seed, capfdbinary: Fd) -> None:
    queue.call("SREM", KEYS.registry, "orders")
    queue.call("DEL", KEYS.partition("orders", 0))
    assert mqctl(capfdbinary, queue.server, "admin delete orders --yes").code == 0
    left = {key for key in keys_of(queue.server) if b"orders" in key}
    assert left == set()
    assert mqctl(capfdbinary, queue.server, "admin delete orders --yes").code == 4


def test_deduplication_keys_are_left_to_their_ttl_and_that_is_said(
    queue: Seed, capfdbinary: Fd
) -> None:
    key = KEYS.dedupe("orders", 1, "0" * 40)
    queue.call("SET", key, f"1:{queue.id(15)}", "PX", 60_000)
    result = mqctl(capfdbinary, queue.server, "admin delete orders --yes")
    assert result.code == 0
    assert "1 deduplication keys stay" in result.err
    assert {k for k in keys_of(queue.server) if b"orders" in k} == {key.encode()}


@pytest.mark.cluster
def test_delete_works_where_every_key_has_its_own_slot(
    cluster_redis: TestServer, capfdbinary: Fd
) -> None:
    made = seed(cluster_redis)
    _litter(made, "orders")
    assert mqctl(capfdbinary, cluster_redis, "admin delete orders --yes").code == 0
    left = {key for key in keys_of(cluster_redis) if b"orders" in key}
    assert left == set()


def test_topics_are_chosen_by_a_glob_or_their_very_name(
    queue: Seed, capfdbinary: Fd
) -> None:
    def named(pattern: str) -> list[str]:
        found = records(mqctl(capfdbinary, queue.server, "admin topics", pattern))
        return [row["topic"] for row in found]

    assert named("a*") == ["a*", "ab"]
    assert named("o?ders") == ["orders"]
    assert named("a[*]") == ["a*"]
    assert named("nothing") == []


def test_a_range_is_read_in_either_direction(queue: Seed, capfdbinary: Fd) -> None:
    def ids(line: str, *more: str) -> list[str]:
        found = records(mqctl(capfdbinary, queue.server, f"admin range {line}", *more))
        return [row["id"] for row in found]

    every = [queue.id(50), queue.id(40), queue.id(30), queue.id(10)]
    assert ids("orders 0") == every
    assert ids("orders 0 --reverse") == every[::-1]
    assert ids(f"orders 0 {queue.id(40)} {queue.id(30)}") == every[1:3]
    assert ids(f"orders 0 {queue.id(40)} {queue.id(30)} --reverse") == every[2:0:-1]
    assert ids(f"orders 0 {queue.id(30)} {queue.id(40)} --reverse") == every[2:0:-1]
    assert ids(f"orders 0 {queue.id(30)} {queue.id(40)}") == []
    assert ids("orders 0 last:2") == every[2:]
    assert ids("orders 0 -n 1", "--", "-35m") == [queue.id(30)]
    assert mqctl(capfdbinary, queue.server, "admin range orders 2").code == 2


def test_recent_is_newest_first_over_all_partitions(
    queue: Seed, capfdbinary: Fd
) -> None:
    line = "admin recent orders -n 3 -F %p:%o\\n"
    out = mqctl(capfdbinary, queue.server, line).out.decode().split()
    assert out == [f"0:{queue.id(10)}", f"1:{queue.id(15)}", f"0:{queue.id(30)}"]
    each = mqctl(
        capfdbinary, queue.server, line.replace("-n 3", "-n 1 --per-partition")
    )
    assert each.out.decode().split() == [f"0:{queue.id(10)}", f"1:{queue.id(15)}"]


def test_a_message_is_found_by_its_id_in_any_partition(
    queue: Seed, capfdbinary: Fd
) -> None:
    line = f"admin get orders {queue.id(15)} -o raw"
    assert mqctl(capfdbinary, queue.server, line).out == b"x" * 70_000 + b"\n"
    assert mqctl(capfdbinary, queue.server, "admin get orders 1-1").code == 4
    wrong = mqctl(capfdbinary, queue.server, "admin get orders 17")
    assert wrong.code == 2
    assert "did you mean 17-0?" in wrong.err


def test_brackets_in_names_are_shown_as_they_are(
    redis: Server, capfdbinary: Fd
) -> None:
    create(Seed(redis, 0), "[bold]x[/bold]", 1)
    result = mqctl(capfdbinary, redis, "admin topics -o table")
    assert b"[bold]x[/bold]" in result.out


def test_a_user_without_dangerous_commands_sees_all_that_is_theirs(
    capfdbinary: Fd,
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with short_directory() as directory:
        server = start_server(directory, "--port", str(port), "--bind", "127.0.0.1")
        try:
            made = seed(server)
            server.call(
                *("ACL", "SETUSER", "limited", "reset", "on", ">pw"),
                *("~streaming:mq:*", "~stream:topic:*"),
                *("+@all", "-@admin", "-@dangerous"),
            )
            for line in (
                "admin topics",
                "admin info orders",
                "admin info orders --partitions",
                "admin groups orders",
                "admin consumers orders billing",
                "admin pending orders billing",
                "admin retries orders",
                "dlq topics",
                "dlq list orders",
                f"dlq replay orders {made.id(60)}",
                "tail orders",
                "admin delete orders --yes",
            ):
                code = run(
                    [*line.split(), "-u", f"redis://limited:pw@127.0.0.1:{port}"]
                )
                out, err = capfdbinary.readouterr()
                assert (code, err, bool(out)) == (0, b"", True), (line, err)
        finally:
            server.stop()
