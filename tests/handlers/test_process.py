import os
from pathlib import Path
from signal import SIGKILL

from mqctl.core.clock import SystemClock
from mqctl.handlers import process
from mqctl.handlers.process import Command, Processes
from tests.support.wait import wait_until


def test_what_starts_while_everything_is_killed_dies_too() -> None:
    processes = Processes(SystemClock(), grace=10)
    processes.signal(SIGKILL)
    command = Command("/bin/sh", [b"sh", b"-c", b"sleep 60"], os.environb, None)
    assert processes.run(command, timeout=None).signal == SIGKILL


def test_a_command_has_its_whole_payload_though_its_consumer_is_killed(
    tmp_path: Path,
) -> None:
    payload, out = bytes(range(256)) * 4000, tmp_path / "out"
    script = f"sleep 0.1; cat > {out}.new; mv {out}.new {out}".encode()
    command = Command("/bin/sh", [b"sh", b"-c", script], os.environb, payload)

    pid = os.fork()
    if pid == 0:  # the consumer: it dies as soon as its command runs
        process._spawn(command, SystemClock())
        os.kill(os.getpid(), SIGKILL)
    _, status = os.waitpid(pid, 0)

    assert os.WTERMSIG(status) == SIGKILL
    wait_until(out.exists, "the command ends")
    assert out.read_bytes() == payload
