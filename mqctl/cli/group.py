"""Command classes: did-you-mean for commands, and a command line split at `--`."""

from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class Group(TyperGroup):
    """A group that says what was probably meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        """Find the command; an unknown one names its nearest neighbour."""
        if args and self.get_command(ctx, args[0]) is None:
            near = get_close_matches(args[0], self.list_commands(ctx), 1)
            meant = f", did you mean {near[0]}?" if near else ""
            raise typer.exceptions.TyperException(
                f"no such command: {args[0]}{meant}"
            ) from None
        return super().resolve_command(ctx, args)


class SplitCommand(TyperCommand):
    """A command whose words after the first `--` are a command of the user's.

    They are kept in `ctx.meta["command"]`, untouched.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Split, then parse what stands before."""
        if "--" in args:
            at = args.index("--")
            ctx.meta["command"] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)
