"""The command tree, grown where it is needed.

A module is imported when its command is wanted: importing all of them takes longer
than most runs.
"""

from importlib import import_module
from typing import Any

import typer

from mqctl.cli.group import Group
from mqctl.cli.output import Output

# Command: its module, and what the list of commands says of it. None: hidden.
PLACES: dict[str, tuple[str, str | None]] = {
    "produce": ("produce", "Store messages in a topic."),
    "consume": ("consume", "Print messages of a group, or run a command for each."),
    "tail": (
        "tail",
        "Show the last messages of topics; joins no group, changes nothing.",
    ),
    "ack": ("ack", "Acknowledge messages by their receipts."),
    "retry": ("ack", "Schedule messages again by their receipts."),
    "dead": ("ack", "Make messages dead letters by their receipts."),
    "admin": ("admin", "Look at topics and groups, make them, remove them."),
    "dlq": ("dlq", "Dead letters: look at them, send them back, delete them."),
    "bench": (
        "bench",
        "Measure how fast messages are stored and received on this server.",
    ),
    "config": ("config", "Profiles: named sets of settings, kept in a file."),
    "server": ("server", "The embedded server that holds local topics."),
    "docs": ("docs", None),
}


class Root(Group):
    """The top of the tree."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002
        """Return the names of the commands that are shown."""
        return [name for name, (_, summary) in PLACES.items() if summary]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        """Return a command, imported now if need be; None for an unknown name."""
        if cmd_name in PLACES and cmd_name not in self.commands:
            part = typer.Typer(rich_markup_mode=None)
            import_module(f"mqctl.cli.{PLACES[cmd_name][0]}").register(part)
            self.commands.update(typer.main.get_group(part).commands)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(n, text) for n, (_, text) in PLACES.items() if text])


app = typer.Typer(
    name="mqctl",
    cls=Root,
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
