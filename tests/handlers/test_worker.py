"""Long-lived workers: real ones, in Python and in the shell."""

import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mqctl.codecs.envelope import encode_delivery
from mqctl.core.clock import ManualClock, SystemClock
from mqctl.core.errors import HandlerBroken
from mqctl.core.handler import SUCCESS, Outcome, Result
from mqctl.core.message import Delivery
from mqctl.handlers.worker import WorkerHandler
from mqctl.handlers.worker_answers import language
from mqctl.handlers.worker_child import Poller
from mqctl.handlers.worker_run import Orders, Rules, Run, Task
from tests.support.wait import wait_until

Deliver = Callable[..., Delivery]
Work = Callable[..., WorkerHandler]
InThread = Callable[..., Callable[[], Any]]

PRELUDE = """
import json, os, signal, sys, time
def say(text):
    sys.stdout.write(text + "\\n")
    sys.stdout.flush()
def answer(message, result="success", **more):
    say(json.dumps({"seq": message["seq"], "result": result, **more}))
def hold_term():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
def wait_for_term():
    signal.sigwait([signal.SIGTERM])
messages = map(json.loads, sys.stdin)
"""
OBEY = "for message in messages: exec(message['payload'])"
"""A worker whose messages are programs."""

BASH_OBEY = 'while IFS= read -r line; do eval "$line"; done'


@pytest.fixture
def worker() -> Iterator[Work]:
    """Makes handlers, and ends their workers after the test."""
    made: list[WorkerHandler] = []

    def make(*command: str, count: int = 1, **options: Any) -> WorkerHandler:
        options = {"clock": SystemClock(), "encode": encode_delivery, **options}
        made.append(WorkerHandler(command, count=count, **options))
        return made[-1]

    yield make
    for handler in made:
        handler.kill()
        handler.close()


@pytest.fixture
def python(worker: Work) -> Work:
    """Makes handlers that run a Python program; it has `messages` and `answer`."""

    def make(program: str = OBEY, **options: Any) -> WorkerHandler:
        return worker(sys.executable, "-ISc", PRELUDE + program, **options)

    return make


@pytest.fixture
def bash(worker: Work) -> Work:
    """Makes handlers that run a line of bash and speak the lines protocol."""

    def make(line: str = BASH_OBEY, *args: str, **options: Any) -> WorkerHandler:
        return worker("bash", "-c", line, "bash", *args, protocol="lines", **options)

    return make


# -- answers ----------------------------------------------------------------------


def test_a_python_worker_answers_one_message_after_another(
    python: Work, delivery: Deliver
) -> None:
    handler = python()
    assert handler(delivery(b"answer(message)")) == SUCCESS
    retry = handler(delivery(b"answer(message, 'retry', delay_ms=5, reason='busy')"))
    assert (retry.outcome, retry.delay_ms) == (Outcome.RETRY, 5)
    assert retry.detail == "busy"
    dead = handler(delivery(b"answer(message, 'dead', reason='no-such-order')"))
    assert (dead.outcome, dead.reason) == (Outcome.DEAD, "no-such-order")
    assert handler(delivery(b"answer(message)")) == SUCCESS


def test_a_shell_worker_reads_payloads_and_answers_in_words(
    bash: Work, delivery: Deliver
) -> None:
    handler = bash()
    assert handler(delivery(b"echo ok")) == SUCCESS
    retry = handler(delivery(b"echo retry 30s busy"))
    assert (retry.outcome, retry.delay_ms) == (Outcome.RETRY, 30_000)
    assert retry.detail == "busy"
    assert handler(delivery(b"echo dead invalid")).reason == "invalid"
    assert handler(delivery(b"echo ok")) == SUCCESS


def test_a_worker_lives_on_from_message_to_message(
    bash: Work, delivery: Deliver
) -> None:
    handler = bash()
    pids = {handler(delivery(b"echo dead $$")).reason for _ in range(5)}
    assert len(pids) == 1


def test_payloads_arrive_byte_for_byte(
    bash: Work, delivery: Deliver, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    handler = bash('while IFS= read -r l; do echo "$l" >>"$1"; echo ok; done', str(out))
    payloads = [b"", b" two  words ", b"\xff\\n\r", "Grüße".encode(), b"x" * 300_000]
    for payload in payloads:
        assert handler(delivery(payload)) == SUCCESS
    assert out.read_bytes().split(b"\n") == [*payloads, b""]


def test_the_worker_sees_the_envelope(python: Work, delivery: Deliver) -> None:
    handler = python("for m in messages: answer(m, 'retry', reason=json.dumps(m))")
    seen = json.loads(handler(delivery(b"body", headers={"a": "b"})).detail)
    assert (seen["topic"], seen["partition"], seen["id"]) == ("orders", 3, "17-4")
    assert (seen["payload"], seen["headers"]) == ("body", {"a": "b"})


def test_answers_may_come_out_of_order(python: Work, delivery: Deliver) -> None:
    handler = python("""
while True:
    three = [next(messages) for _ in range(3)]
    for message in reversed(three):
        answer(message, "retry", reason=message["payload"])
""")
    with ThreadPoolExecutor(3) as pool:
        payloads = [b"%d" % n for n in range(30)]
        results = pool.map(lambda p: handler(delivery(p, partition=int(p))), payloads)
        assert [r.detail for r in results] == [p.decode() for p in payloads]


def test_eight_threads_share_three_workers_and_get_their_own_answers(
    python: Work, delivery: Deliver
) -> None:
    handler = python(
        "for m in messages: answer(m, 'retry', reason=m['payload'])", count=3
    )

    def call(partition: int) -> list[str]:
        return [
            handler(delivery(b"%d-%d" % (partition, n), partition=partition)).detail
            for n in range(50)
        ]

    with ThreadPoolExecutor(8) as pool:
        for partition, details in enumerate(pool.map(call, range(8))):
            assert details == [f"{partition}-{n}" for n in range(50)]


def test_no_more_than_the_window_is_in_a_workers_hands(
    python: Work, delivery: Deliver
) -> None:
    # Were there a third to read at once, the worker would find it in its pipe.
    program = """
import select
while True:
    two = os.read(0, 65536).count(b"\\n")
    while two < 2: two += os.read(0, 65536).count(b"\\n")
    more = select.select([0], [], [], 0.3)[0]
    print("over" if more or two > 2 else "fine", file=sys.stderr, flush=True)
    os._exit(9)
"""
    handler = python(program, window=2)
    with ThreadPoolExecutor(5) as pool:
        futures = [pool.submit(handler, delivery(partition=n)) for n in range(4)]
        assert [f.result().stderr for f in futures] == ["fine\n"] * 4


def test_submitted_deliveries_need_no_thread_each(
    python: Work, delivery: Deliver
) -> None:
    handler = python("for m in messages: answer(m, 'retry', reason=m['payload'])")
    futures = [submitted(handler, delivery(b"%d" % n)) for n in range(200)]
    assert [f.result(30).detail for f in futures] == [str(n) for n in range(200)]


def submitted(handler: WorkerHandler, delivery: Delivery) -> Future[Result]:
    future: Future[Result] = Future()

    def done(result: Result, error: BaseException | None) -> None:
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    handler.submit(delivery, done)
    return future


# -- partitions -------------------------------------------------------------------


def test_partitions_are_spread_and_stay_with_their_worker(
    bash: Work, delivery: Deliver
) -> None:
    handler = bash(count=3)

    def pid(partition: int) -> str | None:
        return handler(delivery(b"echo dead $$", partition=partition)).reason

    first = [pid(n) for n in range(6)]
    assert sorted(first.count(p) for p in set(first)) == [2, 2, 2]
    assert [pid(n) for n in range(6)] == first


def test_workers_are_started_when_they_are_needed(
    bash: Work, delivery: Deliver, children: Callable[[], set[str]]
) -> None:
    before = children()
    handler = bash(count=5)
    assert children() == before
    handler(delivery(b"echo ok"))
    assert len(children() - before) == 1


# -- a worker that dies -----------------------------------------------------------


@pytest.mark.usefixtures("either_way_of_waiting")
def test_a_worker_that_dies_is_replaced_and_its_message_retried(
    python: Work, delivery: Deliver
) -> None:
    handler = python()
    assert handler(delivery(b"answer(message)")) == SUCCESS
    result = handler(delivery(b"sys.stderr.write('no memory\\n'); sys.exit(3)"))
    assert (result.outcome, result.exit_code) == (Outcome.RETRY, 3)
    assert result.detail == "its worker ended: exit status 3"
    assert result.stderr == "no memory\n"
    assert handler(delivery(b"answer(message)")) == SUCCESS


def test_a_worker_killed_by_a_signal_is_told_by_its_name(
    bash: Work, delivery: Deliver
) -> None:
    result = bash()(delivery(b"kill -SEGV $$"))
    assert (result.signal, result.exit_code) == ("SIGSEGV", None)
    assert result.detail == "its worker ended: killed by SIGSEGV"


def test_a_worker_that_ends_well_without_an_answer_has_failed(
    bash: Work, delivery: Deliver
) -> None:
    result = bash()(delivery(b"exit 0"))
    assert (result.outcome, result.exit_code) == (Outcome.RETRY, 0)


@pytest.mark.usefixtures("either_way_of_waiting")
def test_an_answer_counts_although_the_worker_ends_right_after_it(
    bash: Work, delivery: Deliver
) -> None:
    handler = bash("read -r line; echo ok")
    assert [handler(delivery(b"1")) for _ in range(3)] == [SUCCESS] * 3


def test_a_worker_may_end_between_two_messages(python: Work, delivery: Deliver) -> None:
    program = """
import re
line = b""
while not line.endswith(b"\\n"): line += os.read(0, 1)  # and not a byte more
answer({"seq": int(re.search(rb'"seq":([0-9]+)', line)[1])})
"""
    handler = python(program, window=4, restart_base_ms=1, restart_cap_ms=1)
    futures = [submitted(handler, delivery(partition=n)) for n in range(10)]
    assert [f.result(30) for f in futures] == [SUCCESS] * 10


def test_a_worker_that_never_reads_is_no_excuse_for_ever(
    bash: Work, delivery: Deliver
) -> None:
    assert bash("exit 3")(delivery()).detail == "its worker ended: exit status 3"


def test_what_a_worker_said_last_is_heard_although_its_end_is_seen_first(
    clock: ManualClock,
) -> None:
    rules = Rules(
        name="sh",
        program="/bin/sh",
        argv=(b"sh", b"-c", b"read -r line; echo ok"),
        env={},
        language=language("lines", None, 1),
        clock=clock,
        timeout=None,
        grace=10,
    )
    results: list[Result] = []
    queue = deque([Task(1, b"body\n", lambda result, _: results.append(result))])
    run = Run(rules, Orders(), Poller(), queue)
    run.tick()
    wait_until(run.over, "the worker's end")
    run.bury()
    assert results == [SUCCESS]


def test_half_an_answer_is_none(bash: Work, delivery: Deliver) -> None:
    assert bash()(delivery(b"printf ok; exit 3")).outcome is Outcome.RETRY


def test_what_was_not_handed_over_goes_to_the_next_worker(
    bash: Work, delivery: Deliver, fifo: Path, in_thread: InThread
) -> None:
    handler = bash()
    dying = in_thread(handler, delivery(f"read x <{fifo}; exit 3".encode()))
    waiting = [submitted(handler, delivery(b"echo ok", partition=n)) for n in range(5)]
    fifo.write_text("go\n")
    assert dying().outcome is Outcome.RETRY
    assert [f.result(30) for f in waiting] == [SUCCESS] * 5


def test_all_in_its_hands_are_retried_and_the_rest_is_not(
    python: Work, delivery: Deliver, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    program = f"""
if os.path.exists({str(mark)!r}):
    for message in messages: answer(message)
three = [next(messages) for _ in range(3)]
open({str(mark)!r}, "w")
sys.exit(3)
"""
    handler = python(program, window=3)
    futures = [submitted(handler, delivery(partition=n)) for n in range(5)]
    outcomes = [f.result(30).outcome for f in futures]
    assert outcomes == [Outcome.RETRY] * 3 + [Outcome.SUCCESS] * 2


def test_the_other_workers_go_on_when_one_dies(bash: Work, delivery: Deliver) -> None:
    handler = bash(count=2)
    pid = handler(delivery(b"echo dead $$", partition=0)).reason
    handler(delivery(b"exit 3", partition=1))
    assert handler(delivery(b"echo dead $$", partition=0)).reason == pid


def test_the_pause_before_a_new_worker_doubles_until_something_succeeds(
    bash: Work, delivery: Deliver
) -> None:
    handler = bash(restart_base_ms=300)

    def seconds(*payloads: bytes) -> float:
        begun = time.monotonic()
        for payload in payloads:
            handler(delivery(payload))
        return time.monotonic() - begun

    assert seconds(b"exit 1", b"exit 1", b"echo ok") >= 0.3 + 0.6
    assert 0.3 <= seconds(b"exit 1", b"echo ok") < 1.2  # the next double


def test_what_a_worker_started_does_not_outlive_it(
    bash: Work, delivery: Deliver, fifo: Path, in_thread: InThread
) -> None:
    line = f"""exec 3>{fifo}; (trap "" TERM; sleep 60) & exit 3"""
    wait = in_thread(bash(), delivery(line.encode()))
    assert fifo.read_bytes() == b""  # nobody holds it any more
    assert wait().exit_code == 3


@pytest.mark.parametrize("stream", ["input", "output"])
def test_a_worker_that_closes_a_pipe_and_stays_is_stopped(
    bash: Work, delivery: Deliver, fifo: Path, stream: str
) -> None:
    redirect = {"input": "<&-", "output": ">&-"}[stream]
    line = f"read -r line; exec {redirect}; echo up >{fifo}; echo ok; sleep 60"
    handler = bash(line)
    result = submitted(handler, delivery(partition=1))
    assert fifo.read_text() == "up\n"
    if stream == "input":
        assert result.result(30) == SUCCESS
        handler = bash("exec <&-; sleep 60")
        started = submitted(handler, delivery(b"x" * 300_000))
        result = started
    assert result.result(30).outcome is Outcome.RETRY
    assert f"closed its standard {stream}" in result.result().detail


# -- nonsense ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "detail"),
    [
        ("say('Loading...')", "not JSON: 'Loading...'"),
        ("answer({'seq': 4711})", "unknown seq 4711"),
        ("answer(message, 'maybe')", "result is none of success, retry, dead"),
        ("say('x' * 70000)", "not JSON"),
        ("sys.stdout.write('x' * 70000); sys.stdout.flush()", "more than 65536 bytes"),
        ("sys.stdout.buffer.write(bytes(10**8))", "more than 65536 bytes"),
    ],
)
def test_a_worker_that_talks_nonsense_is_stopped_and_replaced(
    python: Work, delivery: Deliver, payload: str, detail: str
) -> None:
    handler = python()
    result = handler(delivery(payload.encode() + b"; time.sleep(60)"))
    assert (result.outcome, result.signal) == (Outcome.RETRY, "SIGTERM")
    assert detail in result.detail
    assert "nonsense" in result.detail
    assert handler(delivery(b"answer(message)")) == SUCCESS


def test_a_second_answer_to_the_same_message_is_nonsense(
    python: Work, delivery: Deliver
) -> None:
    handler = python()
    assert handler(delivery(b"first = message; answer(message)")) == SUCCESS
    assert "unknown seq 1" in handler(delivery(b"answer(first)")).detail


def test_an_answer_to_nothing_is_nonsense(bash: Work, delivery: Deliver) -> None:
    handler = bash()
    first = handler(delivery(b"printf 'dead %s\\nok\\n' $$; sleep 60")).reason
    second = handler(delivery(b"echo dead $$")).reason
    assert first != second  # it was replaced


def test_what_comes_after_nonsense_does_not_count(
    python: Work, delivery: Deliver
) -> None:
    payload = b"""
hold_term()
say("oops")
wait_for_term()
answer(message)
os._exit(0)
"""
    result = python()(delivery(payload))
    assert (result.outcome, result.exit_code) == (Outcome.RETRY, 0)


# -- time -------------------------------------------------------------------------


@pytest.mark.usefixtures("either_way_of_waiting")
def test_a_worker_that_never_answers_gets_term_and_is_replaced(
    bash: Work, delivery: Deliver
) -> None:
    handler = bash(timeout_ms=1000)
    result = handler(delivery(b"sleep 60"))
    assert (result.outcome, result.signal) == (Outcome.RETRY, "SIGTERM")
    assert result.detail == "timed out after 1s"
    assert handler(delivery(b"echo ok")) == SUCCESS


def test_after_the_grace_it_is_killed_with_all_it_started(
    python: Work, delivery: Deliver, fifo: Path, clock: ManualClock
) -> None:
    program = f"""
next(messages)
hold_term()
pipe = os.open({str(fifo)!r}, os.O_WRONLY)
os.set_inheritable(pipe, True)
stubborn = ["sh", "-c", "trap '' TERM; sleep 60"]
os.posix_spawn("/bin/sh", stubborn, os.environ)
os.write(pipe, b"up\\n")
wait_for_term()
os.write(pipe, b"term\\n")
time.sleep(60)
"""
    working = submitted(python(program, clock=clock, timeout_ms=1000), delivery())
    with fifo.open("rb") as pipe:
        assert pipe.readline() == b"up\n"
        clock.advance(1)
        assert pipe.readline() == b"term\n"
        clock.advance(10)
        assert pipe.read() == b""  # ends when nobody holds it any more
    result = working.result(30)
    assert (result.signal, result.detail) == ("SIGKILL", "timed out after 1s")


def test_past_its_time_it_is_a_retry_whatever_it_then_says(
    python: Work, delivery: Deliver, fifo: Path, clock: ManualClock
) -> None:
    program = f"""
late = next(messages)
hold_term()
open({str(fifo)!r}, "w").write("up")
wait_for_term()
answer(late)
os._exit(0)
"""
    future = submitted(python(program, clock=clock, timeout_ms=1000), delivery())
    assert fifo.read_text() == "up"
    clock.advance(1)
    result = future.result(30)
    assert (result.outcome, result.exit_code) == (Outcome.RETRY, 0)
    assert result.detail == "timed out after 1s"


def test_the_others_in_its_hands_may_still_be_answered(
    python: Work, delivery: Deliver, fifo: Path, clock: ManualClock
) -> None:
    program = f"""
slow, quick, lost = [next(messages) for _ in range(3)]
hold_term()
open({str(fifo)!r}, "w").write("up")
wait_for_term()
answer(quick)
os._exit(0)
"""
    handler = python(program, clock=clock, timeout_ms=1000)
    slow, quick, lost = (submitted(handler, delivery(partition=n)) for n in range(3))
    assert fifo.read_text() == "up"
    clock.advance(1)
    assert slow.result(30).detail == "timed out after 1s"
    assert quick.result(30) == SUCCESS
    assert lost.result(30).detail == (
        "its worker was stopped: another message timed out after 1s"
    )


def test_a_messages_time_runs_only_while_it_is_the_oldest(
    python: Work, delivery: Deliver, fifo: Path, clock: ManualClock
) -> None:
    payload = f"open({str(fifo)!r}).read(); answer(message)".encode()
    handler = python(count=2, clock=clock, timeout_ms=1000)
    slow = [submitted(handler, delivery(payload, partition=0)) for _ in range(2)]
    for future in slow:
        writer = os.open(fifo, os.O_WRONLY)  # waits until it is read
        clock.advance(0.9)
        # The answer of the other worker shows that the clock has been looked at.
        assert handler(delivery(b"answer(message)", partition=1)) == SUCCESS
        os.close(writer)
        assert future.result(30) == SUCCESS


# -- being stopped ----------------------------------------------------------------


@pytest.mark.usefixtures("either_way_of_waiting")
def test_kill_ends_everything_at_once_and_gives_messages_back(
    bash: Work, delivery: Deliver, fifo: Path
) -> None:
    handler = bash()
    line = f"""trap "" TERM; exec 3>{fifo}; sleep 60 & echo up >&3; wait"""
    working = submitted(handler, delivery(line.encode()))
    waiting = submitted(handler, delivery(b"echo ok"))
    with fifo.open("rb") as pipe:
        assert pipe.readline() == b"up\n"
        handler.kill()
        assert pipe.read() == b""
    assert working.result(30).outcome is Outcome.RELEASE
    assert waiting.result(30).outcome is Outcome.RELEASE


def test_kill_during_the_grace_leaves_nobody_waiting(
    python: Work, delivery: Deliver, fifo: Path, clock: ManualClock
) -> None:
    program = f"""
two = [next(messages) for _ in range(2)]
hold_term()
pipe = os.open({str(fifo)!r}, os.O_WRONLY)
os.write(pipe, b"up\\n")
wait_for_term()
os.write(pipe, b"term\\n")
time.sleep(60)
"""
    handler = python(program, clock=clock, timeout_ms=1000)
    overdue, other = (submitted(handler, delivery(partition=n)) for n in range(2))
    with fifo.open("rb") as pipe:
        assert pipe.readline() == b"up\n"
        clock.advance(1)
        assert pipe.readline() == b"term\n"
        handler.kill()
    assert overdue.result(30).detail == "timed out after 1s"
    assert other.result(30).outcome is Outcome.RELEASE


def test_after_kill_nothing_is_started(
    bash: Work, delivery: Deliver, tmp_path: Path
) -> None:
    handler = bash('touch "$1"', str(tmp_path / "started"))
    handler.kill()
    assert handler(delivery()).outcome is Outcome.RELEASE
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("ending", ["kill -INT $$", "kill -TERM $$", "exit 143"])
def test_a_worker_stopped_during_a_drain_gives_its_message_back(
    bash: Work, delivery: Deliver, ending: str
) -> None:
    handler = bash(f"trap - INT; {BASH_OBEY}")
    assert handler(delivery(ending.encode())).outcome is Outcome.RETRY
    handler.drain()
    assert handler(delivery(ending.encode())).outcome is Outcome.RELEASE


def test_other_ends_during_a_drain_count_as_usual(
    bash: Work, delivery: Deliver
) -> None:
    handler = bash(timeout_ms=1500)
    handler.drain()
    assert handler(delivery(b"echo ok")) == SUCCESS
    assert handler(delivery(b"exit 3")).outcome is Outcome.RETRY
    assert handler(delivery(b"kill -KILL $$")).outcome is Outcome.RETRY
    assert handler(delivery(b"sleep 60")).detail == "timed out after 1s500ms"


@pytest.mark.usefixtures("either_way_of_waiting")
def test_close_lets_a_worker_end_by_itself(
    python: Work, delivery: Deliver, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    handler = python(f"{OBEY}\nopen({str(end)!r}, 'w').write('tidy')")
    handler(delivery(b"answer(message)"))
    handler.close()
    assert end.read_text() == "tidy"
    assert handler(delivery(b"answer(message)")).outcome is Outcome.RELEASE
    handler.close()


def test_close_takes_an_answer_that_still_comes_and_gives_back_what_waits(
    bash: Work, delivery: Deliver, fifo: Path, in_thread: InThread
) -> None:
    handler = bash()
    working = submitted(handler, delivery(f"read x <{fifo}; echo ok".encode()))
    waiting = submitted(handler, delivery(b"echo ok", partition=1))
    writer = os.open(fifo, os.O_WRONLY)
    closed = in_thread(handler.close)
    assert waiting.result(30).outcome is Outcome.RELEASE
    os.write(writer, b"go\n")
    os.close(writer)
    assert working.result(30) == SUCCESS
    closed()


def test_close_stops_a_stubborn_worker_and_gives_its_message_back(
    bash: Work, delivery: Deliver, fifo: Path, in_thread: InThread
) -> None:
    handler = bash(grace_ms=200)
    line = f"""trap "echo term >&3" TERM; exec 3>{fifo}; echo up >&3"""
    line += "; while :; do sleep 9 & wait; done"
    working = submitted(handler, delivery(line.encode()))
    with fifo.open("rb") as pipe:
        assert pipe.readline() == b"up\n"
        closed = in_thread(handler.close)
        assert pipe.readline() == b"term\n"
        assert pipe.read() == b""
    closed()
    assert working.result(30).outcome is Outcome.RELEASE


def test_close_before_the_first_message_is_nothing(bash: Work) -> None:
    bash().close()


# -- a worker that cannot be started ----------------------------------------------


@pytest.mark.parametrize("name", ["no-such-program", "./no-such-program", ""])
def test_a_missing_program_is_said_before_any_message(worker: Work, name: str) -> None:
    with pytest.raises(HandlerBroken, match="no such program"):
        worker(name)


def test_a_script_the_system_cannot_start_stops_the_consumer(
    worker: Work,
    delivery: Deliver,
    tmp_path: Path,
    open_files: Callable[[], list[str]],
) -> None:
    path = tmp_path / "script"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o700)
    handler = worker(str(path), count=2)
    before = open_files()
    for partition in range(4):
        with pytest.raises(HandlerBroken, match="cannot start"):
            handler(delivery(partition=partition))
    handler.close()
    assert open_files() == before


@pytest.mark.parametrize("status", [126, 127])
def test_a_worker_without_its_program_stops_the_consumer(
    bash: Work, delivery: Deliver, status: int
) -> None:
    with pytest.raises(HandlerBroken, match=str(status)):
        bash(f"read -r line; exit {status}")(delivery())


def test_once_it_has_answered_127_is_an_end_like_others(
    bash: Work, delivery: Deliver
) -> None:
    handler = bash()
    assert handler(delivery(b"echo ok")) == SUCCESS
    assert handler(delivery(b"exit 127")).outcome is Outcome.RETRY


# -- what cannot be said, what is large -------------------------------------------


def test_a_payload_of_two_lines_is_that_messages_fault(
    bash: Work, delivery: Deliver
) -> None:
    handler = bash()
    result = handler(delivery(b"a\nb"))
    assert (result.outcome, result.reason) == (Outcome.DEAD, "undecodable")
    assert "newline" in result.detail
    assert handler(delivery(b"echo ok")) == SUCCESS


def test_a_header_json_cannot_hold_is_that_messages_fault(
    python: Work, delivery: Deliver
) -> None:
    result = python()(delivery(headers={"a": "\ud800"}))
    assert (result.outcome, result.reason) == (Outcome.DEAD, "undecodable")


def test_a_large_payload_and_a_chatty_worker_do_not_deadlock(
    python: Work, delivery: Deliver, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    handler = python("""
for message in messages:
    sys.stderr.write(message["payload"])
    sys.stderr.flush()
    answer(message)
""")
    payload = b"x" * 5_000_000
    futures = [submitted(handler, delivery(payload)) for _ in range(3)]
    assert [f.result(60) for f in futures] == [SUCCESS] * 3
    handler.close()
    assert capfdbinary.readouterr().err == payload * 3


def test_a_worker_that_reads_half_a_message_is_stopped_in_time(
    bash: Work, delivery: Deliver
) -> None:
    handler = bash("head -c 10 >&2; sleep 60", timeout_ms=1000)
    result = handler(delivery(b"x" * 1_000_000))
    assert result.detail == "timed out after 1s"
    assert result.stderr == "x" * 10


# -- its surroundings -------------------------------------------------------------


def test_stderr_passes_through_and_a_result_carries_only_its_own(
    bash: Work, delivery: Deliver, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    handler = bash()
    first = handler(delivery(b"echo one >&2; echo dead"))
    second = handler(delivery(b"echo two >&2; echo dead"))
    assert (first.stderr, second.stderr) == ("one\n", "two\n")
    assert capfdbinary.readouterr() == (b"", b"one\ntwo\n")


def test_the_last_8_kb_of_stderr_are_kept(bash: Work, delivery: Deliver) -> None:
    result = bash()(delivery(b"seq 5000 >&2; echo dead"))
    everything = "".join(f"{n}\n" for n in range(1, 5001))
    assert result.stderr == everything[-8192:]


def test_the_worker_leads_a_session_and_knows_no_outer_message(
    python: Work, delivery: Deliver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MQ_KEY", "of an outer message")
    monkeypatch.setenv("APP_HOME", "/srv")
    fine = "os.getsid(0) == os.getpid() and 'MQ_KEY' not in os.environ"
    fine += " and os.environ['APP_HOME'] == '/srv'"
    payload = f"answer(message, 'success' if {fine} else 'dead')".encode()
    assert python()(delivery(payload)) == SUCCESS


@pytest.mark.usefixtures("either_way_of_waiting")
def test_many_workers_leave_no_files_and_no_zombies(
    bash: Work,
    delivery: Deliver,
    open_files: Callable[[], list[str]],
    children: Callable[[], set[str]],
) -> None:
    files, processes = open_files(), children()
    handler = bash(count=3, restart_base_ms=1, restart_cap_ms=1)
    for n in range(60):
        handler(delivery([b"echo ok", b"exit 3", b"echo nonsense"][n % 3], partition=n))
    handler.close()
    assert open_files() == files
    assert children() == processes


def test_a_lost_exit_status_is_no_success(bash: Work, delivery: Deliver) -> None:
    handler = bash()
    previous = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert handler(delivery(b"echo ok")) == SUCCESS
        result = handler(delivery(b"exit 0"))
    finally:
        signal.signal(signal.SIGCHLD, previous)
    assert result.outcome is Outcome.RETRY
    assert result.detail == "its worker ended: its exit status was lost"


def test_nobody_waits_for_ever_when_the_handler_itself_fails(
    bash: Work, delivery: Deliver, children: Callable[[], set[str]]
) -> None:
    before = children()
    handler = bash()

    def broken(_result: Result, _error: BaseException | None) -> None:
        raise RuntimeError("a bug")

    handler.submit(delivery(b"echo ok"), broken)
    waiting = submitted(handler, delivery(b"sleep 60", partition=1))
    with pytest.raises(RuntimeError, match="a bug"):
        waiting.result(30)
    with pytest.raises(RuntimeError, match="a bug"):
        handler(delivery(b"echo ok"))
    handler.close()
    assert children() == before
