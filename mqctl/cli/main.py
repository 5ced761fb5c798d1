"""mqctl: run a command, and turn whatever happens into one line and an exit code."""

import os
import signal
import sys
from collections.abc import Sequence
from itertools import pairwise

import typer
from typer.exceptions import Abort, Exit, TyperException

from mqctl import __version__
from mqctl.cli.context import Context
from mqctl.cli.output import Output
from mqctl.core.errors import Interrupted, MqError

_MACHINE = frozenset({"ndjson", "json", "csv"})
_FORMS = _MACHINE | {"table", "raw", "none", "id"}
_BUG = 70
_SIGNALLED = 128


def _app() -> typer.Typer:
    from mqctl.cli import commands

    return commands.app


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _occupy_standard_streams()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, exit statuses are lost
    code = run(arguments)
    _flush()
    if code == Interrupted.exit:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    sys.exit(code)


def _occupy_standard_streams() -> None:
    """Keep sockets from getting the number of a standard stream that is closed.

    What stands in fails as a closed one does: it cannot be read, or written.
    """
    for fd, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, mode)  # the lowest number that is free: this one
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


def run(arguments: list[str]) -> int:
    """Run a command line; return its exit code. Errors have been told by then."""
    told: dict[str, str | None] = {}  # what a profile says of the output
    try:
        if arguments == ["--version"]:  # without loading the commands
            Output().text(f"mqctl {__version__}")
            return 0
        returned = _app()(arguments, standalone_mode=False, prog_name="mqctl", obj=told)
    except MqError as error:
        tell(error, arguments, told.get("output"))
        if isinstance(error, Interrupted):
            return _SIGNALLED + error.number
        return error.exit
    except (BrokenPipeError, SystemExit):  # what Typer makes of the former
        _abandon_stdout()
        return 0
    except Exit as done:
        return done.exit_code
    except (Abort, KeyboardInterrupt):
        return Interrupted.exit
    except TyperException as error:
        _usage(error, arguments)
        return 2
    except Exception as error:  # noqa: BLE001 - the last line of defence
        _bug(error)
        return _BUG
    return returned if isinstance(returned, int) else 0


def tell(error: MqError, arguments: Sequence[str], output: str | None = None) -> None:
    """Write an error to stderr: a line, or a JSON object for a machine format.

    `output` is the format when neither arguments nor environment name one.
    """
    from mqctl.render.notes import error_line, error_object

    if _is_machine(arguments, output):
        text = error_object(error).decode("utf-8", "replace")
    else:
        text = error_line(error) + "\n"
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def _is_machine(arguments: Sequence[str], output: str | None) -> bool:
    """Tell whether a machine format is asked for."""
    words = list(arguments)
    if "--" in words:
        words = words[: words.index("--")]
    asked = [_format(*pair) for pair in pairwise([*words, ""])]
    named = [form for form in asked if form in _FORMS]
    named += [os.environ.get(name, "") for name in ("MQCTL_OUTPUT", "MQCTL_PRINT")]
    return next(filter(None, [*named, output]), "") in _MACHINE


def _format(word: str, following: str) -> str:
    """Return the value of an option that chooses a format, joined or in two words."""
    name, joined, value = word.partition("=")
    if name in {"--output", "--print"}:
        return value if joined else following
    if not word.startswith("-") or word.startswith("--"):
        return ""
    return following if word.endswith("o") else word.partition("o")[2]


def _usage(error: TyperException, arguments: Sequence[str]) -> None:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "mqctl"
    message, hint = error.format_message(), f"{path} --help"
    near = getattr(error, "possibilities", None)
    if near:
        message = f"{error.message}, did you mean {near[0]}?"
    elif message.startswith("No such option: -") and path == "mqctl produce":
        hint = "a payload that begins with a dash goes after --"
    message = " ".join(message.split()).rstrip(".")
    tell(_UsageError(message[:1].lower() + message[1:], hint=hint), arguments)


class _UsageError(MqError):
    """A command line that cannot be read."""

    code = "usage"
    exit = 2


def _bug(error: BaseException) -> None:
    from mqctl.cli.context import say

    if os.environ.get("MQCTL_DEBUG"):
        raise error
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    place = ""
    if where is not None:
        name = os.path.basename(where.tb_frame.f_code.co_filename)  # noqa: PTH119
        place = f" at {name}:{where.tb_lineno}"
    say(
        f"this is a bug in mqctl {__version__}{place}: {type(error).__name__}: {error}"
        " (MQCTL_DEBUG=1 shows more)"
    )


def _abandon_stdout() -> None:
    """Keep the interpreter from complaining about a reader that has gone."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.close(devnull)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except (BrokenPipeError, ValueError, AttributeError):
        _abandon_stdout()
    except OSError:
        _abandon_stdout()


__all__ = ["Context", "main", "run", "tell"]
