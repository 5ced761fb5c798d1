"""mqctl: run a command, and turn whatever happens into one line and an exit code."""

import os
import signal
import sys
from collections.abc import Sequence

import typer
from typer.exceptions import Abort, Exit, TyperException

from mqctl import __version__
from mqctl.cli.context import Context
from mqctl.core.errors import Interrupted, MqError

_MACHINE = frozenset({"ndjson", "json", "csv"})
_BUG = 70


def _app() -> typer.Typer:
    from mqctl.cli import commands

    return commands.app


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, exit statuses are lost
    code = run(arguments)
    _flush()
    if code == Interrupted.exit:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run a command line; return its exit code. Errors have been told by then."""
    if arguments == ["--version"]:
        sys.stdout.write(f"mqctl {__version__}\n")
        return 0
    try:
        returned = _app()(arguments, standalone_mode=False, prog_name="mqctl")
    except MqError as error:
        tell(error, arguments)
        return error.exit
    except BrokenPipeError:
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


def tell(error: MqError, arguments: Sequence[str]) -> None:
    """Write an error to stderr: a line, or a JSON object for a machine format."""
    from mqctl.render.notes import error_line, error_object

    if _is_machine(arguments):
        text = error_object(error).decode("utf-8", "replace")
    else:
        text = error_line(error) + "\n"
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def _is_machine(arguments: Sequence[str]) -> bool:
    """Tell whether the command line asks for a machine format by `-o`."""
    words = list(arguments)
    if "--" in words:
        words = words[: words.index("--")]
    for i, word in enumerate(words):
        if word in {"-o", "--output"} and i + 1 < len(words):
            return words[i + 1] in _MACHINE
        if word.startswith("--output="):
            return word.removeprefix("--output=") in _MACHINE
        if word.startswith("-o") and word[2:] in _MACHINE:
            return True
    return False


def _usage(error: TyperException, arguments: Sequence[str]) -> None:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "mqctl"
    message = error.format_message().strip().replace("\n", " ").rstrip(".")
    hint = f"{path} --help"
    if message.startswith("No such option: -") and "produce" in path:
        hint = "a payload that begins with a dash goes after --"
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
