"""mqctl produce: what its options store, print and say."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from tests.support.server import Server
from tests.support.shell import environment, shell
from tests.support.wait import wait_until

ID = re.compile(r"\d{13}-\d+")


def objects(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def read(server: Server, topic: str = "t", group: str = "g") -> list[dict[str, Any]]:
    result = shell(f"mqctl consume '{topic}' -g {group} -e -q -o ndjson", server)
    assert result.code == 0, result.err
    return objects(result.out)


def test_nothing_is_printed_unless_asked(redis: Server) -> None:
    result = shell("seq 10 | mqctl produce t", redis)

    assert (result.code, result.out, result.err) == (0, b"", "")
    assert [one["payload"] for one in read(redis)] == [str(n) for n in range(1, 11)]


def test_print_id_gives_the_ids_in_order(redis: Server) -> None:
    result = shell("seq 1000 | mqctl produce t --print id", redis)

    ids = result.out.decode().splitlines()
    assert all(map(ID.fullmatch, ids))
    assert ids == [one["id"] for one in read(redis)]


def test_print_ndjson_gives_one_object_a_line_with_its_fields(redis: Server) -> None:
    result = shell("printf 'k:a\\nl:b\\n' | mqctl produce t -K : --print ndjson", redis)

    first, second = objects(result.out)
    assert list(first) == ["line", "status", "topic", "partition", "id", "key", "ts_ms"]
    assert (first["line"], first["status"], first["topic"]) == (1, "stored", "t")
    assert [first["key"], second["key"]] == ["k", "l"]
    assert isinstance(first["partition"], int)
    assert ID.fullmatch(first["id"])


def test_headers_and_retries_are_stored_with_the_message(redis: Server) -> None:
    shell("mqctl produce t x -H a=1 -H 'b= two =' -H c= --max-retries 7", redis)

    (found,) = read(redis)
    assert found["headers"] == {"a": "1", "b": " two =", "c": ""}
    assert found["max_retries"] == 7


def test_a_key_chooses_the_partition_and_p_overrides_it(redis: Server) -> None:
    line = "mqctl produce t x --partitions 8 -k key --print ndjson"
    by_key = [objects(shell(line, redis).out)[0]["partition"] for _ in range(2)]
    other = (by_key[0] + 1) % 8

    forced = objects(shell(f"{line} -p {other}", redis).out)[0]["partition"]

    assert by_key[0] == by_key[1]
    assert forced == other


def test_csv_names_its_columns(redis: Server) -> None:
    table = 'key,payload,partition,h:kind\\nk,"a,\\nb",1,x\\n,plain,0,\\n'
    line = f"printf '{table}' | mqctl produce t -i csv --partitions 2"

    assert shell(line, redis).code == 0

    found = sorted(read(redis), key=lambda one: -one["partition"])
    assert [one["payload"] for one in found] == ["a,\nb", "plain"]
    assert [one["partition"] for one in found] == [1, 0]
    assert found[0]["key"] == "k"
    assert found[0]["headers"] == {"kind": "x"}


def test_an_unknown_csv_column_is_bad_data_before_anything_is_sent(
    redis: Server,
) -> None:
    result = shell("printf 'payload,colour\\nx,red\\n' | mqctl produce t -i csv", redis)

    assert (result.code, "colour" in result.err) == (65, True)
    assert redis.call("XLEN", "stream:topic:t:p:0") == 0


def test_skipped_lines_are_counted_and_named(redis: Server) -> None:
    line = (
        "printf '1\\nx\\n3\\ny\\n' |"
        " mqctl produce t -i json --on-error skip --print ndjson"
    )

    result = shell(line, redis)

    assert result.code == 3
    told = {one["line"]: one["status"] for one in objects(result.out)}
    assert told == {1: "stored", 2: "skipped", 3: "stored", 4: "skipped"}
    assert "2 bad lines skipped, 2 stored" in result.err
    assert [one["payload"] for one in read(redis)] == ["1", "3"]


def test_empty_lines_are_messages_or_not_as_asked(redis: Server) -> None:
    shell("printf 'a\\n\\nb\\n' | mqctl produce t", redis)
    shell("printf 'c\\n\\nd\\n' | mqctl produce t --empty skip", redis)

    assert [one["payload"] for one in read(redis)] == ["a", "", "b", "c", "d"]


def test_a_second_message_with_the_same_key_is_a_duplicate(redis: Server) -> None:
    line = "mqctl produce t x --dedupe-key order-17 --print ndjson"

    (first,), (second,) = (
        objects(shell(line, redis).out),
        objects(shell(line, redis).out),
    )

    assert (first["status"], second["status"]) == ("stored", "duplicate")
    assert second["id"] == first["id"]
    assert len(read(redis)) == 1


def test_a_delayed_message_has_an_item_and_a_time(redis: Server) -> None:
    result = shell("mqctl produce t x --delay 1h --print ndjson", redis)

    (told,) = objects(result.out)
    assert (told["status"], told["id"]) == ("delayed", None)
    assert told["due_at_ms"] - told["ts_ms"] == pytest.approx(3_600_000, abs=2000)
    assert "nobody consumes t now" in result.err
    assert read(redis) == []


def test_verbose_counts_and_quiet_does_not(redis: Server) -> None:
    assert "3 messages stored" in shell("mqctl produce t a b c -v", redis).err
    assert shell("mqctl produce t </dev/null -q", redis).err == ""


def test_what_is_read_is_stored_at_once(redis: Server) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "mqctl", "produce", "t"],
        stdin=subprocess.PIPE,
        env=environment(redis.url),
    )
    assert process.stdin
    process.stdin.write(b"one\n")
    process.stdin.flush()

    wait_until(lambda: redis.call("XLEN", "stream:topic:t:p:0") == 1, "the message")

    process.stdin.close()
    assert process.wait(timeout=20) == 0


def test_an_environment_name_is_part_of_the_topic_on_both_sides(redis: Server) -> None:
    shell("mqctl produce t x --env prod", redis)

    assert read(redis, "t_prod")[0]["payload"] == "x"
    there = shell("mqctl consume t --env prod -g h -e -q", redis)
    assert there.out == b"x\n"


def test_prefixes_keep_two_worlds_apart(redis: Server) -> None:
    words = "--key-prefix a:b --stream-key-prefix c"

    shell(f"mqctl produce t x {words}", redis)

    assert max(redis.call("KEYS", "*")) == b"c:t:p:0"
    assert shell("mqctl consume t -g g -e", redis).code == 4
    assert shell(f"mqctl consume t -g g -e -q {words}", redis).out == b"x\n"
