import os
import signal
import stat
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from mqctl.core.clock import ManualClock
from mqctl.core.errors import HandlerBroken
from mqctl.core.exit_rules import parse_map
from mqctl.core.handler import Outcome, Result
from mqctl.core.message import Delivery
from mqctl.handlers.exec import ExecHandler

Deliver = Callable[..., Delivery]
Handle = Callable[..., ExecHandler]
InThread = Callable[..., Callable[[], Any]]

HOSTILE = [
    b"{topic} {id}",
    b"two words",
    b"; touch oops",
    b"$(touch oops) `touch oops` $HOME",
    b"line\nline\n",
    b"'\"\\",
    b"-rf",
    b"*",
    b"\xff\xfe\x80",
    "Grüße".encode(),
    b"",
]


@pytest.mark.usefixtures("either_way_of_waiting")
@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (0, Outcome.SUCCESS),
        (1, Outcome.RETRY),
        (65, Outcome.DEAD),
        (75, Outcome.RETRY),
        (100, Outcome.DEAD),
        (111, Outcome.RETRY),
        (255, Outcome.RETRY),
    ],
)
def test_the_exit_status_decides(
    shell: Handle, delivery: Deliver, status: int, outcome: Outcome
) -> None:
    result = shell(f"exit {status}")(delivery())
    assert (result.outcome, result.exit_code) == (outcome, status)
    assert not result.stop


def test_99_is_success_and_asks_to_stop(shell: Handle, delivery: Deliver) -> None:
    result = shell("exit 99")(delivery())
    assert (result.outcome, result.stop) == (Outcome.SUCCESS, True)


def test_a_dead_letter_carries_status_and_last_words(
    shell: Handle, delivery: Deliver
) -> None:
    result = shell("echo no such order >&2; exit 65")(delivery())
    assert result.reason == "rejected"
    assert result.detail == "exit status 65"
    assert result.stderr == "no such order\n"


def test_a_retry_carries_what_an_exhausted_message_needs(
    shell: Handle, delivery: Deliver
) -> None:
    result = shell("echo down >&2; exit 7")(delivery())
    assert (result.reason, result.detail) == (None, "exit status 7")
    assert (result.exit_code, result.stderr) == (7, "down\n")


def test_a_death_by_signal_is_a_retry_with_its_name(
    shell: Handle, delivery: Deliver
) -> None:
    result = shell("kill -KILL $$")(delivery())
    assert result.outcome is Outcome.RETRY
    assert (result.signal, result.exit_code) == ("SIGKILL", None)
    assert result.detail == "killed by SIGKILL"


def test_a_signal_without_a_name_is_told_by_number(
    shell: Handle, delivery: Deliver
) -> None:
    assert shell("kill -40 $$")(delivery()).signal == "SIG40"


def test_mapped_statuses_come_first(shell: Handle, delivery: Deliver) -> None:
    rules = parse_map("3=dead,10-19=retry:30s,127=success,5=stop")
    assert shell("exit 3", rules=rules)(delivery()).outcome is Outcome.DEAD
    assert shell("exit 12", rules=rules)(delivery()).delay_ms == 30_000
    assert shell("exit 127", rules=rules)(delivery()).outcome is Outcome.SUCCESS
    assert shell("exit 5", rules=rules)(delivery()).stop


@pytest.mark.parametrize("status", [126, 127])
def test_a_command_that_cannot_run_stops_the_worker(
    shell: Handle, delivery: Deliver, status: int
) -> None:
    with pytest.raises(HandlerBroken, match=str(status)) as caught:
        shell(f"exit {status}")(delivery())
    assert caught.value.exit == 78


@pytest.mark.parametrize("name", ["no-such-program", "./no-such-program", ""])
def test_a_missing_program_is_said_before_any_message(
    handler: Handle, name: str
) -> None:
    with pytest.raises(HandlerBroken, match="no such program"):
        handler(name)


def test_a_file_that_is_not_executable_is_said_before_any_message(
    handler: Handle, tmp_path: Path
) -> None:
    path = tmp_path / "script"
    path.write_text("#!/bin/sh\n")
    with pytest.raises(HandlerBroken, match="not an executable file") as caught:
        handler(str(path))
    assert caught.value.hint == f"chmod +x {path}"


def program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize("text", ["exit 0\n", "#!/no/such/interpreter\n"])
def test_a_script_the_system_cannot_start_stops_the_worker(
    handler: Handle,
    delivery: Deliver,
    tmp_path: Path,
    open_files: Callable[[], list[str]],
    text: str,
) -> None:
    broken = handler(program(tmp_path / "script", text))
    before = open_files()
    with pytest.raises(HandlerBroken, match="cannot start"):
        broken(delivery(b"body"))
    assert open_files() == before


def test_a_program_removed_later_stops_the_worker(
    handler: Handle, delivery: Deliver, tmp_path: Path
) -> None:
    path = tmp_path / "script"
    command = handler(program(path, "#!/bin/sh\n"))
    path.unlink()
    with pytest.raises(HandlerBroken, match="No such file"):
        command(delivery())
    with pytest.raises(HandlerBroken, match="no such program"):
        command.check()


def test_the_payload_is_on_stdin_byte_for_byte(
    handler: Handle, delivery: Deliver, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    payload = bytes(range(256)) * 3
    assert handler("cat")(delivery(payload)).outcome is Outcome.SUCCESS
    assert capfdbinary.readouterr().out == payload


def test_the_envelope_is_on_stdin_when_asked_for(
    handler: Handle, delivery: Deliver, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def encode(it: Delivery) -> bytes:
        return b"<" + it.message.payload + b">\n"

    handler("cat", stdin="envelope", encode=encode)(delivery(b"body"))
    assert capfdbinary.readouterr().out == b"<body>\n"


def test_an_envelope_needs_its_encoder(handler: Handle) -> None:
    with pytest.raises(ValueError, match="encode"):
        handler("cat", stdin="envelope")


def test_stdin_can_be_nothing(
    shell: Handle, delivery: Deliver, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    shell("readlink /proc/self/fd/0; cat", stdin="none")(delivery(b"body"))
    assert capfdbinary.readouterr().out == b"/dev/null\n"


@pytest.mark.parametrize("key", HOSTILE)
def test_hostile_data_arrives_as_one_argument_and_one_variable(
    shell: Handle,
    delivery: Deliver,
    capfdbinary: pytest.CaptureFixture[bytes],
    key: bytes,
) -> None:
    line = 'printf "%s|%s|%s" $# "$1" "$MQ_KEY"'
    assert shell(line, "{key}")(delivery(key=key)).outcome is Outcome.SUCCESS
    assert capfdbinary.readouterr().out == b"1|" + key + b"|" + key


def test_arguments_that_are_not_utf8_pass_through(
    handler: Handle, delivery: Deliver, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    handler("printf", "%s", os.fsdecode(b"\xff{topic}\xfe"))(delivery())
    assert capfdbinary.readouterr().out == b"\xfforders\xfe"


def test_the_command_sees_the_variables_and_what_mqctl_was_given(
    handler: Handle,
    delivery: Deliver,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MQ_KEY", "of an outer message")
    monkeypatch.setenv("MQ_HEADER_OUTER", "1")
    monkeypatch.setenv("APP_HOME", "/srv")
    handler("env", "-0")(delivery(key=None, headers={"tenant": "zürich\n"}))
    lines = capfdbinary.readouterr().out.rstrip(b"\0").split(b"\0")
    seen = dict(line.split(b"=", 1) for line in lines)
    assert seen[b"MQ_TOPIC"] == b"orders"
    assert seen[b"MQ_MAX_ATTEMPTS"] == b"6"
    assert seen[b"MQ_HEADER_TENANT"] == "zürich\n".encode()
    assert seen[b"APP_HOME"] == b"/srv"
    assert not {b"MQ_KEY", b"MQ_HEADER_OUTER"} & seen.keys()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"key": b"a\0b"}, "undecodable"),
        ({"headers": {"h": "\0"}}, "undecodable"),
        ({"headers": {"h": "x" * 200_000}}, "too-large"),
        ({"headers": {f"h{i}": "x" * 10_000 for i in range(400)}}, "too-large"),
        ({"key": b"x" * 200_000}, "too-large"),
    ],
)
def test_what_no_command_can_be_given_is_that_messages_fault(
    handler: Handle,
    delivery: Deliver,
    open_files: Callable[[], list[str]],
    changes: dict[str, Any],
    reason: str,
) -> None:
    command = handler("true")
    before = open_files()
    result = command(delivery(b"body", **changes))
    assert (result.outcome, result.reason) == (Outcome.DEAD, reason)
    assert result.detail
    assert open_files() == before
    assert command(delivery(b"body")).outcome is Outcome.SUCCESS


@pytest.mark.usefixtures("either_way_of_waiting")
def test_stdout_and_stderr_pass_through_unchanged(
    shell: Handle, delivery: Deliver, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    result = shell("printf 'out\\377'; printf 'err\\377' >&2")(delivery())
    captured = capfdbinary.readouterr()
    assert (captured.out, captured.err) == (b"out\xff", b"err\xff")
    assert result.stderr == "err�"


def test_stderr_is_passed_on_while_the_command_runs(
    shell: Handle,
    delivery: Deliver,
    fifo: Path,
    in_thread: InThread,
) -> None:
    read, write = os.pipe()
    saved = os.dup(2)
    os.dup2(write, 2)
    try:
        wait = in_thread(shell('echo half >&2; read x < "$1"', str(fifo)), delivery())
        assert os.read(read, 100) == b"half\n"
        fifo.write_text("go\n")
        assert wait().outcome is Outcome.SUCCESS
    finally:
        os.dup2(saved, 2)
        for fd in (read, write, saved):
            os.close(fd)


def test_the_last_8_kb_of_stderr_are_kept(shell: Handle, delivery: Deliver) -> None:
    result = shell("seq 5000 >&2; exit 65")(delivery())
    everything = "".join(f"{n}\n" for n in range(1, 5001))
    assert result.stderr == everything[-8192:]


def test_a_closed_stderr_of_ours_does_not_stop_the_work(
    shell: Handle, delivery: Deliver
) -> None:
    saved = os.dup(2)
    os.close(2)
    try:
        holder = os.open(os.devnull, os.O_RDONLY)  # takes the number: writes fail
        result = shell("echo words >&2; exit 65")(delivery())
    finally:
        os.dup2(saved, 2)
        os.close(saved)
    assert holder == 2
    assert result.stderr == "words\n"


@pytest.mark.usefixtures("either_way_of_waiting")
def test_something_left_running_with_stderr_open_does_not_block(
    shell: Handle, delivery: Deliver, fifo: Path
) -> None:
    result = shell('(read x < "$1") & echo words >&2; exit 0', str(fifo))(delivery())
    assert (result.outcome, result.stderr) == (Outcome.SUCCESS, "words\n")
    fifo.write_text("go\n")  # it was still there, reading


def test_a_command_that_does_not_read_its_payload_is_fine(
    handler: Handle, delivery: Deliver
) -> None:
    assert handler("true")(delivery(b"x" * 1_000_000)).outcome is Outcome.SUCCESS


@pytest.mark.usefixtures("either_way_of_waiting")
def test_a_command_that_closes_its_stderr_is_waited_for(
    shell: Handle, delivery: Deliver
) -> None:
    result = shell("exec 2>&-; cat >/dev/null; exit 65")(delivery(b"x" * 300_000))
    assert result.outcome is Outcome.DEAD


def test_a_large_payload_and_a_chatty_command_do_not_deadlock(
    shell: Handle, delivery: Deliver, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    payload = os.urandom(1 << 20) * 20
    result = shell("cat >&2")(delivery(payload))
    assert result.outcome is Outcome.SUCCESS
    assert capfdbinary.readouterr().err == payload


@pytest.mark.usefixtures("either_way_of_waiting")
def test_a_command_past_its_time_gets_term_and_is_retried(
    handler: Handle, delivery: Deliver
) -> None:
    result = handler("sleep", "60", timeout_ms=100)(delivery())
    assert (result.outcome, result.signal) == (Outcome.RETRY, "SIGTERM")
    assert result.detail == "timed out after 100ms"


def test_a_command_past_its_time_is_retried_whatever_it_then_says(
    shell: Handle,
    delivery: Deliver,
    fifo: Path,
    in_thread: InThread,
    clock: ManualClock,
) -> None:
    line = """trap "exit 0" TERM; exec 3>"$1"; echo up >&3; sleep 60 & wait"""
    wait = in_thread(shell(line, str(fifo), clock=clock, timeout_ms=90_000), delivery())
    with fifo.open("rb") as pipe:
        assert pipe.readline() == b"up\n"
        clock.advance(90)
        result = wait()
    assert (result.outcome, result.exit_code) == (Outcome.RETRY, 0)
    assert result.detail == "timed out after 1m30s"


def test_after_the_grace_everything_it_started_is_killed(
    shell: Handle,
    delivery: Deliver,
    fifo: Path,
    in_thread: InThread,
    clock: ManualClock,
) -> None:
    line = """
        trap "echo term >&3" TERM; exec 3>"$1"
        (trap "" TERM; while :; do sleep 60; done) &
        echo up >&3; while :; do wait; done
    """
    wait = in_thread(shell(line, str(fifo), clock=clock, timeout_ms=1000), delivery())
    with fifo.open("rb") as pipe:
        assert pipe.readline() == b"up\n"
        clock.advance(1)
        assert pipe.readline() == b"term\n"
        clock.advance(10)
        assert pipe.read() == b""  # ends when nobody holds it any more
    result = wait()
    assert (result.outcome, result.signal) == (Outcome.RETRY, "SIGKILL")
    assert result.detail == "timed out after 1s"


def test_a_stubborn_grandchild_does_not_outlive_a_polite_command(
    shell: Handle, delivery: Deliver, fifo: Path, in_thread: InThread
) -> None:
    line = """exec 3>"$1"; (trap "" TERM; while :; do sleep 60; done) & wait"""
    command = shell(line, str(fifo), timeout_ms=1000, grace_ms=100)
    wait = in_thread(command, delivery())
    assert fifo.read_bytes() == b""
    assert wait().signal == "SIGTERM"


def test_what_a_command_started_may_use_the_grace_longer_than_itself(
    shell: Handle, delivery: Deliver, fifo: Path, in_thread: InThread
) -> None:
    line = """
        exec 3>"$1"
        (trap "sleep 0.2; echo tidy >&3; exit" TERM; sleep 60 & wait) & wait
    """
    wait = in_thread(shell(line, str(fifo), timeout_ms=1000), delivery())
    assert fifo.read_bytes() == b"tidy\n"
    assert wait().signal == "SIGTERM"


@pytest.mark.parametrize("ending", ["kill -INT $$", "kill -TERM $$", "exit 143"])
def test_a_command_stopped_during_a_drain_gives_its_message_back(
    shell: Handle, delivery: Deliver, ending: str
) -> None:
    command = shell(ending)
    assert command(delivery()).outcome is Outcome.RETRY
    command.drain()
    assert command(delivery()).outcome is Outcome.RELEASE


def test_other_endings_during_a_drain_count_as_usual(
    shell: Handle, delivery: Deliver
) -> None:
    command = shell('eval "$1"', "{key}")
    command.drain()
    assert command(delivery(key=b"exit 0")).outcome is Outcome.SUCCESS
    assert command(delivery(key=b"exit 65")).outcome is Outcome.DEAD
    assert command(delivery(key=b"kill -KILL $$")).outcome is Outcome.RETRY


def test_a_command_past_its_time_during_a_drain_is_a_retry(
    shell: Handle, delivery: Deliver
) -> None:
    command = shell("sleep 60", timeout_ms=100)
    command.drain()
    assert command(delivery()).outcome is Outcome.RETRY


def test_the_command_leads_a_session_the_terminal_does_not_reach(
    handler: Handle, delivery: Deliver
) -> None:
    check = "import os; raise SystemExit(os.getsid(0) != os.getpid())"
    result = handler(sys.executable, "-c", check)(delivery())
    assert result.exit_code == 0


def test_the_command_inherits_no_blocked_or_pipe_ignoring_signals(
    shell: Handle,
    delivery: Deliver,
    in_thread: InThread,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    command = shell("grep -E 'SigBlk|SigIgn' /proc/self/status")

    def with_blocked_signals() -> Result:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
        return command(delivery())

    assert in_thread(with_blocked_signals)().outcome is Outcome.SUCCESS
    masks = dict(line.split() for line in capfdbinary.readouterr().out.splitlines())
    assert int(masks[b"SigBlk:"], 16) == 0
    assert not int(masks[b"SigIgn:"], 16) & 1 << (signal.SIGPIPE - 1)


@pytest.mark.usefixtures("either_way_of_waiting")
def test_kill_ends_everything_at_once_and_gives_the_message_back(
    shell: Handle, delivery: Deliver, fifo: Path, in_thread: InThread
) -> None:
    line = """trap "" TERM; exec 3>"$1"; sleep 60 & echo up >&3; wait"""
    command = shell(line, str(fifo))
    wait = in_thread(command, delivery())
    with fifo.open("rb") as pipe:
        assert pipe.readline() == b"up\n"
        command.kill()
        assert pipe.read() == b""
    assert wait().outcome is Outcome.RELEASE


def test_after_kill_nothing_is_started(
    shell: Handle, delivery: Deliver, tmp_path: Path
) -> None:
    command = shell('touch "$1"', str(tmp_path / "started"))
    command.kill()
    assert command(delivery()).outcome is Outcome.RELEASE
    assert not (tmp_path / "started").exists()


def test_terminate_lets_a_command_finish_within_the_grace(
    shell: Handle, delivery: Deliver, fifo: Path, in_thread: InThread
) -> None:
    result = terminated(shell, delivery, fifo, in_thread, trap="exit 65")
    assert result.outcome is Outcome.DEAD


def test_terminate_kills_after_the_grace_and_gives_the_message_back(
    shell: Handle, delivery: Deliver, fifo: Path, in_thread: InThread
) -> None:
    result = terminated(shell, delivery, fifo, in_thread, trap="", grace_ms=200)
    assert result.outcome is Outcome.RELEASE


def terminated(
    shell: Handle,
    delivery: Deliver,
    fifo: Path,
    in_thread: InThread,
    *,
    trap: str,
    **options: Any,
) -> Result:
    line = (
        f"""trap "{trap}" TERM; exec 3>"$1"; echo up >&3; while :; do sleep 9; done"""
    )
    command = shell(line, str(fifo), **options)
    wait = in_thread(command, delivery())
    with fifo.open("rb") as pipe:
        assert pipe.readline() == b"up\n"
        command.terminate()
        assert pipe.read() == b""
    result: Result = wait()
    return result


def test_calls_from_several_threads_run_side_by_side(
    shell: Handle, delivery: Deliver, tmp_path: Path
) -> None:
    up, go = tmp_path / "up", tmp_path / "go"
    os.mkfifo(up)
    os.mkfifo(go)
    # Each says that it is up, then waits for a word that comes when all are.
    command = shell('echo up >"$1"; read x <"$2"', str(up), str(go))
    with ThreadPoolExecutor(8) as pool, open_both_ways(up) as ups:
        running = [pool.submit(command, delivery(partition=i)) for i in range(8)]
        for _ in range(8):
            assert ups.readline() == b"up\n"
        with open_both_ways(go) as words:
            words.write(b"go\n" * 8)
            outcomes = {one.result().outcome for one in running}
    assert outcomes == {Outcome.SUCCESS}


def open_both_ways(path: Path) -> BinaryIO:
    """Open a named pipe without waiting for another side."""
    return open(os.open(path, os.O_RDWR), "r+b", buffering=0)


def test_results_of_parallel_calls_are_not_mixed_up(
    shell: Handle, delivery: Deliver
) -> None:
    command = shell('cat >&2; exit "$MQ_PARTITION"')

    def call(number: int) -> Result:
        return command(delivery(b"%d" % number, partition=number))

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(call, range(1, 61)))
    assert [r.exit_code for r in results] == list(range(1, 61))
    assert [r.stderr for r in results] == [str(n) for n in range(1, 61)]


@pytest.mark.usefixtures("either_way_of_waiting")
def test_200_runs_leave_no_files_and_no_zombies(
    handler: Handle,
    delivery: Deliver,
    open_files: Callable[[], list[str]],
    children: Callable[[], set[str]],
) -> None:
    command = handler("true")
    files, processes = open_files(), children()
    for _ in range(200):
        command(delivery(b"body"))
    assert open_files() == files
    assert children() == processes


def test_a_lost_exit_status_is_never_taken_for_success(
    handler: Handle, delivery: Deliver, open_files: Callable[[], list[str]]
) -> None:
    command = handler("true")
    before = open_files()
    previous = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(HandlerBroken, match="lost"):
            command(delivery())
    finally:
        signal.signal(signal.SIGCHLD, previous)
    assert open_files() == before
