"""mqctl server: the embedded server behind `local`."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mqctl.cli.context import Context
from mqctl.cli.group import Group
from mqctl.cli.options import command, flag, switch
from mqctl.cli.records import OutputForm, show
from mqctl.core.errors import BadUsage, MqError

if TYPE_CHECKING:
    from mqctl.store.instance import Instance

app = typer.Typer(
    cls=Group,
    help="The embedded server that holds local topics.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="server")


def _instance(context: Context) -> "Instance":
    from mqctl.store import embedded

    spec = context.url or "local"
    if spec != "local" and not spec.startswith("local:"):
        raise BadUsage(
            "only a local server can be managed here",
            hint="--url local or --url local:NAME",
        )
    return embedded.locate(spec, context.environ)


@command(app, "start")
def start(
    context: Context,
    fsync: Annotated[
        Literal["always", "everysec", "no"],
        flag("--fsync", help="When the append-only file is forced to disk."),
    ] = "always",
) -> None:
    """Start the server if it does not run.

    Example: mqctl server start --fsync everysec
    """
    from mqctl.store import embedded

    instance = _instance(context)
    began: list[object] = []
    embedded.ensure(instance, fsync=fsync, on_start=began.append)
    state = embedded.status(instance)
    what = "started" if began else "runs already"
    context.note(f"the local server {what}: pid {state.pid}, {state.url}")
    if state.fsync != fsync:
        context.note(f"it runs with fsync {state.fsync}; stop it first to change that")


@command(app, "stop")
def stop(
    context: Context,
    timeout: Annotated[
        str, switch("--timeout", help="How long to wait for it to end.", metavar="DUR")
    ] = "30s",
) -> None:
    """Stop the server; what it stored stays.

    Example: mqctl server stop
    """
    from mqctl.core.units import duration_ms
    from mqctl.store import embedded

    stopped = embedded.stop(_instance(context), duration_ms(timeout) / 1000)
    context.note("the local server stopped" if stopped else "no local server runs")


@command(app, "status")
def status(context: Context, output: OutputForm = None) -> None:
    """Tell whether the server runs; exit 4 when it does not.

    Example: mqctl server status -o json
    """
    from dataclasses import asdict

    from mqctl.store import embedded

    state = embedded.status(_instance(context))
    show(context, [asdict(state)], output, single=True)
    if not state.running:
        raise typer.Exit(4)


@command(app, "path")
def path(context: Context) -> None:
    """Print the server's data directory.

    Example: mqctl server path
    """
    context.out.write(f"{_instance(context).dir}\n".encode())


@command(app, "logs")
def logs(
    context: Context,
    lines: Annotated[int, switch("--lines", "-n", help="How many lines.")] = 50,
) -> None:
    """Print the last lines of the server's log.

    Example: mqctl server logs -n 20
    """
    from mqctl.store import embedded

    found = embedded.log_tail(_instance(context), lines)
    context.out.write("".join(f"{line}\n" for line in found).encode())


__all__ = ["MqError", "app", "register"]
