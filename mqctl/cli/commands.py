"""The command tree."""

import typer

from mqctl.cli import ack, admin, consume, dlq, docs, produce, server, tail
from mqctl.cli.group import Group
from mqctl.cli.output import Output

app = typer.Typer(
    name="mqctl",
    cls=Group,
    help="Partitioned, durable message queues on Redis and Valkey Streams.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
)


@app.callback()
def welcome(
    context: typer.Context,
    *,
    version: bool = typer.Option(False, "--version", help="Show the version."),
) -> None:
    """Partitioned, durable message queues on Redis and Valkey Streams."""
    if version:
        from mqctl import __version__

        Output().text(f"mqctl {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        Output().text(_WELCOME)
        raise typer.Exit


_WELCOME = """\
mqctl: partitioned, durable message queues on Redis and Valkey Streams

  seq 10 | mqctl produce demo          store ten messages
  mqctl consume demo -g readers -e     read them, once
  mqctl admin topics                   see what is there

mqctl --help lists the commands."""

for module in (produce, consume, tail, ack, admin, dlq, server, docs):
    module.register(app)
