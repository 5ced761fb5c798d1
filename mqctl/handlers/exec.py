"""A command per message, started directly: its exit status is the outcome."""

import errno
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Literal

from mqctl.core.clock import Clock
from mqctl.core.errors import BadData, HandlerBroken, TooLarge
from mqctl.core.exit_rules import Rule, Verdict, verdict
from mqctl.core.handler import Outcome, Result
from mqctl.core.message import Delivery
from mqctl.core.units import short_duration
from mqctl.handlers.environment import arguments, inheritable, variables
from mqctl.handlers.process import Command, Ended, Processes

Stdin = Literal["payload", "envelope", "none"]

_RELEASE = Result(Outcome.RELEASE)
_OUTCOMES = {
    Verdict.SUCCESS: Outcome.SUCCESS,
    Verdict.STOP: Outcome.SUCCESS,
    Verdict.RETRY: Outcome.RETRY,
    Verdict.DEAD: Outcome.DEAD,
}
# How a service manager or a user ends programs, and what a shell or a virtual
# machine that was ended so exits with: 128 more.
_STOPPED_BY = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM})
_SHELL_OFFSET = 128


@dataclass(frozen=True, slots=True)
class ExecOptions:
    """How commands are run and their statuses read.

    `timeout_ms` None is no limit; `grace_ms` lies between TERM and KILL.
    """

    stdin: Stdin = "payload"
    rules: tuple[Rule, ...] = ()
    timeout_ms: int | None = None
    grace_ms: int = 10_000


class ExecHandler:
    """Runs `command` once per delivery; callable from several threads at once.

    `encode` makes the envelope, needed with `stdin="envelope"` only. Raises
    HandlerBroken when the program cannot be found, ValueError without `encode`
    where it is needed.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        clock: Clock,
        options: ExecOptions | None = None,
        encode: Callable[[Delivery], bytes] | None = None,
    ) -> None:
        self._options = options or ExecOptions()
        self._command = [os.fsencode(part) for part in command]
        self._name = command[0]
        self._stdin = _stdin(self._options.stdin, encode)
        self._env = inheritable(os.environb)
        self._processes = Processes(clock, self._options.grace_ms / 1000)
        self._draining = False
        self._stopping = False
        self._program = self.check()

    def check(self) -> str:
        """Return the program's path; HandlerBroken when there is none to run."""
        path = shutil.which(self._name)
        if path is None:
            raise _no_program(self._name)
        return path

    def __call__(self, delivery: Delivery) -> Result:
        """Run the command for one delivery and read its exit status.

        Raises HandlerBroken when it cannot be started; what cannot be passed to any
        command is the message's fault and makes it a dead letter.
        """
        if self._stopping:
            return _RELEASE
        try:
            ended = self._run(delivery)
        except BadData as error:
            reason = "too-large" if isinstance(error, TooLarge) else "undecodable"
            return Result(Outcome.DEAD, reason=reason, detail=error.message)
        return self._result(ended)

    def drain(self) -> None:
        """From now on a command ended by INT, TERM or HUP gives its message back."""
        self._draining = True

    def terminate(self) -> None:
        """Send TERM to all that runs, KILL after the grace; returns at once."""
        self._stopping = True
        self._processes.signal(signal.SIGTERM)
        timer = Timer(self._options.grace_ms / 1000, self.kill)
        timer.daemon = True
        timer.start()

    def kill(self) -> None:
        """Kill all that runs, with everything it started, at once.

        Their messages, and those of calls still to come, are given back.
        """
        self._stopping = True
        self._processes.signal(signal.SIGKILL)

    def _run(self, delivery: Delivery) -> Ended:
        command = Command(
            program=self._program,
            argv=arguments(self._command, delivery),
            env=self._env | variables(delivery),
            stdin=self._stdin(delivery),
        )
        limit = self._options.timeout_ms
        try:
            return self._processes.run(command, None if limit is None else limit / 1000)
        except OSError as error:
            if error.errno == errno.E2BIG:
                # The environment we have was itself passed to us: the message's
                # share is what made it too large.
                raise _too_large(command) from None
            raise _cannot_start(self._name, error) from error

    def _result(self, ended: Ended) -> Result:
        if not ended.timed_out and self._was_stopped(ended):
            return _RELEASE
        status = None if ended.timed_out else ended.exit_code
        rule = verdict(status, ended.signal, self._options.rules)
        if rule.verdict is Verdict.BROKEN:
            raise _broken(self._name, ended)
        outcome = _OUTCOMES[rule.verdict]
        return Result(
            outcome,
            delay_ms=rule.delay_ms,
            reason="rejected" if outcome is Outcome.DEAD else None,
            detail="" if outcome is Outcome.SUCCESS else self._detail(ended),
            exit_code=ended.exit_code,
            signal=_signal_name(ended.signal),
            stderr=ended.stderr.decode("utf-8", "replace"),
            stop=rule.verdict is Verdict.STOP,
        )

    def _was_stopped(self, ended: Ended) -> bool:
        if self._stopping and ended.signal == signal.SIGKILL:
            return True
        number = ended.signal or (ended.exit_code or 0) - _SHELL_OFFSET
        return (self._draining or self._stopping) and number in _STOPPED_BY

    def _detail(self, ended: Ended) -> str:
        if ended.timed_out:
            return f"timed out after {short_duration(self._options.timeout_ms or 0)}"
        if ended.signal is not None:
            return f"killed by {_signal_name(ended.signal)}"
        return f"exit status {ended.exit_code}"


def _stdin(
    kind: Stdin, encode: Callable[[Delivery], bytes] | None
) -> Callable[[Delivery], bytes | None]:
    if kind == "none":
        return lambda _: None
    if kind == "payload":
        return lambda delivery: delivery.message.payload
    if encode is None:
        raise ValueError("an envelope on stdin needs `encode`")
    return encode


def _signal_name(number: int | None) -> str | None:
    if number is None:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal between the two that have names
        return f"SIG{number}"


def _no_program(name: str) -> HandlerBroken:
    if Path(name).is_file():
        return HandlerBroken(
            f"cannot start {name!r}: it is not an executable file",
            hint=f"chmod +x {name}" if os.sep in name else None,
            command=name,
        )
    where = "" if os.sep in name else " in PATH"
    return HandlerBroken(f"cannot start {name!r}: no such program{where}", command=name)


def _cannot_start(name: str, error: OSError) -> HandlerBroken:
    hints = {
        errno.ENOENT: "is the interpreter of its first line installed?",
        errno.ENOEXEC: "a script starts with a line such as #!/bin/sh",
    }
    return HandlerBroken(
        f"cannot start {name!r}: {os.strerror(error.errno or 0)}",
        hint=hints.get(error.errno or 0),
        command=name,
    )


def _broken(name: str, ended: Ended) -> HandlerBroken:
    code = ended.exit_code
    meaning = "cannot be executed" if code == 126 else "was not found"  # noqa: PLR2004
    return HandlerBroken(
        f"{name!r} exited with {code}: a command it needs {meaning}",
        hint=f"if it means something else by that: --map {code}=retry",
        command=name,
        exit_code=code,
    )


def _too_large(command: Command) -> TooLarge:
    size = sum(map(len, command.argv)) + sum(
        len(name) + len(value) + 2 for name, value in command.env.items()
    )
    return TooLarge(
        f"arguments and environment of {size} bytes are more than the system takes"
    )
