"""Input that cannot be meant: one line that says so, the right exit code, no trace."""

import json
import os
import socket
from pathlib import Path

import pytest

from mqctl.cli.main import run
from tests.support.server import Server, short_directory, start_server
from tests.support.shell import Result, shell

SECRET = "hunter2"


def refused(result: Result, code: int, *parts: str) -> None:
    """Check an error: one line, perhaps a hint, and nothing that belongs inside."""
    assert result.code == code, result.err
    first, *rest = result.err.rstrip("\n").split("\n")
    assert first.startswith("mqctl: ")
    assert all(line.startswith(("hint: ", "      ")) for line in rest), result.err
    assert "Traceback" not in result.err
    for part in parts:
        assert part in result.err


def call(capfd: pytest.CaptureFixture[str], server: Server, *arguments: str) -> Result:
    """Run a command line in this process."""
    capfd.readouterr()
    code = run([*arguments[:1], "-u", server.url, *arguments[1:]])
    out, err = capfd.readouterr()
    return Result(code, out.encode(), err)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["produce"], 2, "missing argument 'TOPIC'"),
        (["produce", "t", "--partitons", "3"], 2, "did you mean --partitions?"),
        (["produce", "t", "-5"], 2, "goes after --"),
        (["produce", "t", "--x"], 2, "goes after --"),
        (["produce", "t", "x", "--partition"], 2, "requires an argument"),
        (["produce", "t", "x", "-p", "one"], 2, "'one' is not a valid int"),
        (["produce", "", "x"], 2, "topic name is empty"),
        (["produce", "a\tb", "x"], 2, "control characters: a\\tb"),
        (["produce", "a\x1b[2J", "x"], 2, "control characters: a\\x1b[2J"),
        (["produce", "t" * 256, "x"], 2, "256 bytes, 255 at most"),
        (["produce", "é" * 128, "x"], 2, "256 bytes, 255 at most"),
        (["produce", "\udcff\udcfe", "x"], 2, "not valid UTF-8: \\xff\\xfe"),
        (["produce", "item:x", "x"], 2, "cannot begin with item:"),
        (["produce", "lock:x", "x"], 2, "cannot begin with lock:"),
        (["produce", "idx:x", "x"], 2, "cannot begin with idx:"),
        (["produce", "new", "x", "-p", "4"], 2, "does not exist and would have 1"),
        (["produce", "new", "x", "-p", "-1"], 2, "partition -1 is out of range"),
        (["produce", "new", "x", "--partitions", "0"], 2, "at least one partition"),
        (["produce", "new", "x", "--max-bytes", "3"], 2, "did you mean 3KB?"),
        (["produce", "new", "x", "-k", "a", "-K", "b"], 2, "exclude each other"),
        (["produce", "new", "x", "-K", ""], 2, "key separator is empty"),
        (["produce", "new", "x", "-D", ""], 2, "delimiter is empty"),
        (["produce", "new", "x", "-H", "a"], 2, "write it -H NAME=VALUE"),
        (["produce", "new", "x", "-H", "=b"], 2, "write it -H NAME=VALUE"),
        (["produce", "new", "x", "-H", "x-dead-reason=b"], 2, "is reserved"),
        (["produce", "new", "x", "-H", "partitionId=1"], 2, "is reserved"),
        (["produce", "new", "x", "-H", "a=\udcff"], 2, "not valid UTF-8"),
        (["produce", "new", "x", "--no-create"], 4, "topic new does not exist"),
        (["produce", "new", "@/no/such"], 66, "cannot open /no/such"),
        (["produce", "new", "--file", "/no/such"], 66, "cannot open /no/such"),
        (["produce", "new", "@/tmp"], 66, "Is a directory"),
        (["consume", "t"], 2, "missing option '--group' / '-g'"),
        (["consume", "t", "-g", ""], 2, "group name is empty"),
        (["consume", "t", "-g", "\udcff"], 2, "not valid UTF-8: \\xff"),
        (["consume", "t", "-g", "g", "--poll", "10"], 2, "did you mean 10s?"),
        (["consume", "t", "-g", "g", "--poll", "soon"], 2, "not a duration: soon"),
        (["consume", "t", "-g", "g", "--workers", "0"], 2, "at least 1"),
        (["consume", "t", "-g", "g", "--renew", "1m"], 2, "less than half"),
        (["consume", "t", "-g", "g", "-F", "%q"], 2, "%q"),
        (["consume", "t", "-g", "g", "--ack", "maybe"], 2, "'maybe' is not one of"),
        (["consume", "t", "-g", "g", "-p", "one"], 2, "not a list of partitions"),
        (["consume", "new", "-g", "g", "-e"], 4, "topic new does not exist"),
        (["ack"], 2, "no receipts given"),
        (["ack", "nonsense"], 65, "not a receipt: nonsense"),
        (["retry", "--delay", "5", "r1:t:0:1-0:g:c:1"], 2, "did you mean 5s?"),
        (["server", "start"], 2, "only a local server can be managed here"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_leaves_nothing(
    redis: Server,
    capfd: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    said: str,
) -> None:
    if words[0] == "server":
        words = [*words, "-u", redis.url]
        capfd.readouterr()
        exit_code = run(words)
        result = Result(exit_code, b"", capfd.readouterr().err)
    else:
        result = call(capfd, redis, *words)

    refused(result, code, said)
    # Only a directory that turns out to be one when it is read comes after.
    assert redis.call("DBSIZE") == 0 or words[-1] == "@/tmp"


@pytest.mark.parametrize(
    "name", ["*", "a?b[c]", "{x}", "a}b{c", "a:b", "ünï code", "[bold]x[/bold]", "-"]
)
def test_names_are_data_and_not_patterns(
    redis: Server, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    call(capfd, redis, "produce", "other", "no")

    stored = call(capfd, redis, "produce", name, "yes")
    read = call(capfd, redis, "consume", name, "-g", name.replace(":", ""), "-e")

    assert (stored.code, stored.err) == (0, "")
    assert (read.code, read.out) == (0, b"yes\n")


def test_a_position_that_is_none_creates_no_group(
    redis: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    call(capfd, redis, "produce", "t", "x")

    refused(
        call(capfd, redis, "consume", "t", "-g", "g", "--from", "yesterday"),
        2,
        "not a position: yesterday",
    )

    assert redis.call("XINFO", "GROUPS", "stream:topic:t:p:0") == []


def test_a_new_group_with_a_colon_is_refused_before_it_is_made(
    redis: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    call(capfd, redis, "produce", "t", "x")

    refused(call(capfd, redis, "consume", "t", "-g", "a:b", "-e"), 2, "colon")

    assert redis.call("XINFO", "GROUPS", "stream:topic:t:p:0") == []


URLS = [
    (f"redis://:{SECRET}@127.0.0.1:1", 69, "cannot reach redis://127.0.0.1:1"),
    (f"redis://user:{SECRET}@nosuch.invalid", 69, "cannot reach redis://nosuch"),
    (f"rediss://:{SECRET}@127.0.0.1:1", 69, "cannot reach rediss://127.0.0.1:1"),
    (f"redis://:{SECRET}@s/w@localhost:1", 2, "percent-encode"),
    (f"redis://:{SECRET}/w@localhost:1", 2, "percent-encode"),
    (f"redis://:{SECRET}#w@localhost:1", 2, "percent-encode"),
    (f"redis://:{SECRET}[w@localhost:1", 2, "percent-encode"),
    (f"redis://:{SECRET}@127.0.0.1:66666", 2, "port is not valid"),
    (f"redis://:{SECRET}@127.0.0.1:1/abc", 2, "percent-encode"),
    (f"http://:{SECRET}@host", 2, "unknown URL scheme: http://"),
    (f":{SECRET}@host:1", 2, "it has no scheme"),
    (f"redis+sentinel://:{SECRET}@h/service", 78, "not supported yet"),
    ("redis://", 2, "URL without a host"),
    ("unix://", 2, "without a path"),
    ("unix:///no/such/socket", 69, "No such file or directory"),
    ("local:../x", 2, "names no embedded server"),
]


@pytest.mark.parametrize(("url", "code", "said"), URLS)
def test_an_address_that_leads_nowhere_is_explained_without_its_password(
    capfd: pytest.CaptureFixture[str], url: str, code: int, said: str
) -> None:
    exit_code = run(["produce", "t", "x", "-u", url])
    out, err = capfd.readouterr()

    refused(Result(exit_code, out.encode(), err), code, said)
    assert SECRET not in err


def test_a_host_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=1) as silent:
        port = silent.getsockname()[1]
        filler = [socket.socket() for _ in range(8)]
        for one in filler:  # the queue of connections is full: nobody gets in
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        result = shell("mqctl produce t x", f"redis://127.0.0.1:{port}", timeout=20)
        for one in filler:
            one.close()

    refused(result, 69, "no answer in 5 s")


def test_passwords_come_from_url_environment_or_file(tmp_path: Path) -> None:
    password = "p@s/w:o#r%d["
    encoded = "p%40s%2Fw%3Ao%23r%25d%5B"
    (tmp_path / "secret").write_text(f"{password}\n")
    with short_directory() as directory:
        server = start_server(directory)
        server.call("CONFIG", "SET", "requirepass", password)
        url = server.url
        try:
            good = [
                shell("mqctl produce t x", url, MQCTL_PASSWORD=password),
                shell("mqctl produce t x --password-file secret", url, cwd=tmp_path),
                shell("mqctl produce t x", url.replace("//", f"//:{encoded}@")),
            ]
            missing = shell("mqctl produce t x", url)
            wrong = shell("mqctl produce t x", url, MQCTL_PASSWORD=SECRET)
            no_file = shell("mqctl produce t x --password-file nope", url, cwd=tmp_path)
        finally:
            server.kill()

    assert [(r.code, r.err) for r in good] == [(0, "")] * 3
    refused(missing, 77, "wants a password")
    refused(wrong, 77, "refused the login")
    assert SECRET not in wrong.err
    refused(no_file, 66, "cannot read the password file", "nope")


def test_a_directory_that_cannot_hold_a_server_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    result = shell("mqctl produce t x", "local", MQCTL_DATA_DIR=str(tmp_path / "file"))

    refused(result, 78, "Not a directory", "hint: set MQCTL_DATA_DIR")


def stored(server: Server, topic: str = "t") -> int:
    return int(server.call("XLEN", f"stream:topic:{topic}:p:0"))


@pytest.mark.parametrize(
    ("line", "form", "said"),
    [
        ("nope", "json", "line 500 is not JSON"),
        ("nope", "ndjson", "line 500: not JSON"),
        ("[1]", "ndjson", "line 500: not an object but an array"),
        ('{"payload":5}', "ndjson", "payload must be a string"),
        ('{"payload":"a","payload_b64":"YQ=="}', "ndjson", "more than one payload"),
        ('{"payload_b64":"***"}', "ndjson", "payload_b64 is not base64"),
        ('{"key":"a","key_b64":"YQ=="}', "ndjson", "more than one key"),
        ('{"headers":{"a":1}}', "ndjson", "header a must be a string"),
        ('{"headers":[]}', "ndjson", "headers must be an object"),
        ('{"max_retries":-1}', "ndjson", "max_retries must be 0"),
    ],
)
def test_a_bad_line_stops_the_run_with_its_number_and_where_to_go_on(
    redis: Server,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    line: str,
    form: str,
    said: str,
) -> None:
    good = ['{"payload":"x"}'] * 1000
    (tmp_path / "in").write_text("\n".join([*good[:499], line, *good[500:]]))

    path = str(tmp_path / "in")
    result = call(capfd, redis, "produce", "t", "-i", form, "--file", path)

    refused(result, 65, said, "line 500", "499 stored", "--start-line 500")
    assert stored(redis) == 499


def test_going_on_after_a_bad_line_stores_exactly_the_rest(
    redis: Server, tmp_path: Path
) -> None:
    lines = ["1", "2", "x", "4", "5"]
    (tmp_path / "in").write_text("\n".join(lines))
    first = shell("mqctl produce t -i json --file in", redis, cwd=tmp_path)
    (tmp_path / "in").write_text("1\n2\n3\n4\n5")

    again = first.err.strip().rpartition("go on with ")[2]
    second = shell(f"mqctl produce t -i json --file in {again}", redis, cwd=tmp_path)
    read = shell("mqctl consume t -g g -e -q", redis)

    assert (first.code, second.code) == (65, 0)
    assert read.out == b"1\n2\n3\n4\n5\n"


def test_an_error_is_an_object_for_a_machine(redis: Server) -> None:
    result = shell("printf '1\\nx\\n' | mqctl produce t -i json --print ndjson", redis)

    error = json.loads(result.err)["error"]
    assert (error["code"], error["exit"], result.code) == ("bad_data", 65, 65)
    assert error["facts"] == {"line": 2, "stored": 1, "resume_line": 2}
    assert error["hint"] == "go on with --start-line 2"
    assert [json.loads(line)["status"] for line in result.out.splitlines()] == [
        "stored"
    ]


@pytest.mark.parametrize(
    "words",
    [
        "consume nowhere -g g -e -o ndjson",
        "consume nowhere -g g -e --output=json",
        "consume nowhere -g g -eo csv",
        "consume nowhere -g g -eondjson",
    ],
)
def test_every_way_to_ask_for_a_machine_format_gets_an_object(
    redis: Server, capfd: pytest.CaptureFixture[str], words: str
) -> None:
    result = call(capfd, redis, *words.split())

    assert json.loads(result.err)["error"]["code"] == "not_found"
    assert json.loads(result.err)["error"]["facts"] == {"topic": "nowhere"}


def test_the_format_may_be_asked_for_by_the_environment(redis: Server) -> None:
    line = "mqctl consume nowhere -g g -e"

    machine = shell(line, redis, MQCTL_OUTPUT="ndjson")
    person = shell(f"{line} -o raw", redis, MQCTL_OUTPUT="ndjson")

    assert json.loads(machine.err)["error"]["exit"] == 4
    refused(person, 4, "does not exist")


def test_options_come_from_the_environment_and_the_command_line_wins(
    redis: Server,
) -> None:
    names = {"MQCTL_KEY": "k", "MQCTL_HEADER": "a=1 b=2", "MQCTL_PARTITIONS": "3"}

    shell("mqctl produce t x && mqctl produce t y -k other", redis, **names)
    result = shell("mqctl consume t -e -q -o ndjson", redis, MQCTL_GROUP="g")

    found = [json.loads(line) for line in result.out.splitlines()]
    assert {one["payload"]: one["key"] for one in found} == {"x": "k", "y": "other"}
    assert found[0]["headers"] == {"a": "1", "b": "2"}
    assert redis.call("HGET", "streaming:mq:topic:t:meta", "partitionCount") == b"3"


@pytest.mark.parametrize(
    ("line", "payloads"),
    [
        ("mqctl produce t -- -5 --x", [b"-5", b"--x"]),
        ("mqctl produce t ''", [b""]),
        ("mqctl produce t null", [b"null"]),
        (r"mqctl produce t $'\xff\xfe'", [b"\xff\xfe"]),
        (r"printf '\xff\xfe\n' | mqctl produce t", [b"\xff\xfe"]),
        (r"printf 'a\r\nb' | mqctl produce t", [b"a\r", b"b"]),
        (r"printf 'a\n\nb\n' | mqctl produce t", [b"a", b"", b"b"]),
        (r"printf 'a\0b\nc' | mqctl produce t", [b"a\0b", b"c"]),
        (r"printf 'a\nb\0c\0' | mqctl produce t -0", [b"a\nb", b"c"]),
        (r"printf 'a\nb\n' | mqctl produce t -i raw", [b"a\nb\n"]),
        ("printf 'aéébéé' | mqctl produce t -D éé", [b"a", b"b"]),
        ("printf in | mqctl produce t a - @f", [b"a", b"in", b"file\n"]),
        ("mqctl produce t --file f --file f", [b"file", b"file"]),
        ("mqctl produce t @/dev/fd/3 3< <(printf pipe)", [b"pipe"]),
    ],
)
def test_bytes_in_are_bytes_out(
    redis: Server, tmp_path: Path, line: str, payloads: list[bytes]
) -> None:
    (tmp_path / "f").write_text("file\n")

    done = shell(line, redis, cwd=tmp_path)
    read = shell("mqctl consume t -g g -e -q -D '\\0'", redis)

    assert (done.code, done.out, done.err) == (0, b"", "")
    assert read.out == b"".join(payload + b"\0" for payload in payloads)


@pytest.mark.parametrize(
    ("line", "pairs"),
    [
        ("printf 'k::v::w' | mqctl produce t -K ::", [("k", "v::w")]),
        ("printf 'kéév' | mqctl produce t -K éé", [("k", "v")]),
        ("printf ':v' | mqctl produce t -K :", [("", "v")]),
        ("printf 'v' | mqctl produce t", [(None, "v")]),
        ("mqctl produce t v -k ''", [("", "v")]),
        ("mqctl produce t v -k null", [("null", "v")]),
    ],
)
def test_keys_are_what_was_given(
    redis: Server, line: str, pairs: list[tuple[str | None, str]]
) -> None:
    assert shell(line, redis).code == 0

    read = shell("mqctl consume t -g g -e -q -o ndjson", redis)

    found = [json.loads(one) for one in read.out.splitlines()]
    assert [(one["key"], one["payload"]) for one in found] == pairs


def test_a_key_that_is_not_text_is_kept_and_printed_in_base64(redis: Server) -> None:
    result = shell(r"mqctl produce t x -k $'\xff\xfe' --print ndjson", redis)
    read = shell("mqctl consume t -g g -e -q -o ndjson", redis)

    for line in (result.out, read.out):
        found = json.loads(line)
        assert (found["key"], found["key_b64"]) == (None, "//4=")


def test_a_line_without_the_key_separator_is_bad_data(redis: Server) -> None:
    result = shell("printf 'a:b\\nc\\n' | mqctl produce t -K :", redis)

    refused(result, 65, "line 2 has no key separator ':'", "1 stored")


@pytest.mark.parametrize("line", ["mqctl produce t <&-", "mqctl produce t - <&-"])
def test_a_closed_standard_input_is_a_usage_error(redis: Server, line: str) -> None:
    refused(shell(line, redis), 2, "standard input is closed")


@pytest.mark.parametrize(
    "line", ["mqctl produce t </dev/null", "printf '' | mqctl produce t"]
)
def test_no_input_is_no_message_and_no_error(redis: Server, line: str) -> None:
    result = shell(line, redis)

    assert (result.code, result.out) == (0, b"")
    assert result.err == "mqctl: the input was empty: nothing stored\n"
    assert stored(redis) == 0


def test_one_message_too_large_is_refused_before_anything_of_it_is_sent(
    redis: Server,
) -> None:
    line = (
        "(echo a; echo b; head -c 200 /dev/zero | tr '\\0' x; echo; echo c) |"
        " mqctl produce t --max-bytes 100B"
    )

    result = shell(line, redis)

    refused(result, 65, "line 3", "200 bytes", "2 stored", "--start-line 3")
    assert stored(redis) == 2


def test_a_line_without_an_end_is_refused_in_constant_memory(redis: Server) -> None:
    line = (
        "ulimit -v 1000000;"
        " head -c 3000000000 /dev/zero | mqctl produce t --max-bytes 8MB"
    )

    result = shell(line, redis)

    refused(result, 65, "line 1 has more than 8000000 bytes", "0 stored")
    assert stored(redis) == 0


@pytest.mark.parametrize(
    "line",
    [
        "mqctl produce t x --print id >/dev/full",
        "mqctl produce t x --print id >&-",
        "mqctl consume full -g g -e -q >/dev/full",
        "mqctl --help >/dev/full",
        "mqctl --version >/dev/full",
        "mqctl produce --help >/dev/full",
        "mqctl >/dev/full",
        "mqctl server >/dev/full",
    ],
)
def test_output_that_cannot_be_written_is_exit_74(redis: Server, line: str) -> None:
    shell("mqctl produce full 1 2 3", redis)

    refused(shell(line, redis), 74, "cannot write to standard output")

    left = shell("mqctl consume full -g g -e -q", redis)
    assert left.out == b"1\n2\n3\n"


def test_what_was_stored_before_the_output_failed_is_said(redis: Server) -> None:
    result = shell("mqctl produce t x --print id >/dev/full", redis)

    refused(result, 74, "1 stored")
    assert stored(redis) == 1


@pytest.mark.parametrize("line", ["mqctl produce t x >&-", "mqctl produce t x 2>&-"])
def test_a_stream_that_is_not_needed_may_be_closed(redis: Server, line: str) -> None:
    assert shell(line, redis).code == 0
    assert stored(redis) == 1


def test_an_error_with_nobody_to_read_it_keeps_its_code(redis: Server) -> None:
    assert shell("mqctl produce t x -p 9 2>&-", redis).code == 2
    assert shell("mqctl produce t x -p 9 2>/dev/full", redis).code == 2


@pytest.mark.parametrize(
    "line",
    [
        "mqctl consume many -g g -e -q | head -1",
        "mqctl consume many -g g -e -q -o ndjson | head -1",
        "mqctl --help | head -1",
    ],
)
def test_a_reader_that_leaves_is_no_error(redis: Server, line: str) -> None:
    shell("seq 20000 | mqctl produce many", redis)

    result = shell(line, redis)

    assert (result.code, result.err) == (0, "")
    assert result.out.count(b"\n") == 1


def test_a_reader_of_the_ids_that_leaves_is_told_how_many_are_stored(
    redis: Server, tmp_path: Path
) -> None:
    (tmp_path / "in").write_text("x\n" * 200_000)
    line = "mqctl produce t --print id --file in | head -1"

    result = shell(line, redis, cwd=tmp_path)

    assert (result.code, result.out.count(b"\n")) == (0, 1)
    said = result.err.removeprefix("mqctl: the reader of the output left: at least ")
    assert 0 < int(said.removesuffix(" stored\n")) <= stored(redis) < 200_000


def test_another_partition_count_is_a_note(redis: Server) -> None:
    shell("mqctl produce t x", redis)

    told = shell("mqctl produce t x --partitions 3", redis)
    quiet = shell("mqctl produce t x --partitions 3 -q", redis)

    assert (told.code, quiet.code, quiet.err) == (0, 0, "")
    assert "exists with 1 partitions; --partitions 3 changes nothing" in told.err
    assert stored(redis) == 3


def test_a_server_that_is_none_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(os.fspath(path))
        result = shell("mqctl produce t x", f"unix://{path}")

    refused(result, 69, "Connection refused")
