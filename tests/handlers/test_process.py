import os
from signal import SIGKILL

from mqctl.core.clock import SystemClock
from mqctl.handlers.process import Command, Processes


def test_what_starts_while_everything_is_killed_dies_too() -> None:
    processes = Processes(SystemClock(), grace=10)
    processes.signal(SIGKILL)
    command = Command("/bin/sh", [b"sh", b"-c", b"sleep 60"], os.environb, None)
    assert processes.run(command, timeout=None).signal == SIGKILL
