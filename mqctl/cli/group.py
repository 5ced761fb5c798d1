"""Command classes: did-you-mean for commands, and a command line split at `--`."""

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from mqctl.cli.output import Output


class NoSuchCommand(TyperException):
    """A word where a command was expected; `ctx` is the group's."""

    def __init__(self, message: str, ctx: Any) -> None:  # noqa: ANN401
        super().__init__(message)
        self.ctx = ctx


def _show_help(ctx: Any, _: Any, wanted: bool) -> None:  # noqa: ANN401
    if wanted and not ctx.resilient_parsing:
        Output().text(ctx.get_help())
        raise typer.Exit


class _Helpful:
    """Help goes out like all data: whole, or with an error."""

    def get_help_option(self, ctx: Any) -> Any:  # noqa: ANN401
        """Return the option --help."""
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.callback = _show_help
        return option


class Group(_Helpful, TyperGroup):
    """A group that says what was probably meant, and shows its help when alone."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Parse; nothing at all asks for the help, which is no error."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            _show_help(ctx, None, True)
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002
        """List the commands, each with the whole first paragraph of its help."""
        rows = [
            (name, " ".join((found.help or "").partition("\n\n")[0].split()))
            for name, found in self.commands.items()
            if not found.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        """Find the command; an unknown one names its nearest neighbour."""
        if args and self.get_command(ctx, args[0]) is None:
            from difflib import get_close_matches

            near = get_close_matches(args[0], self.list_commands(ctx), 1)
            meant = f", did you mean {near[0]}?" if near else ""
            raise NoSuchCommand(f"no such command: {args[0]}{meant}", ctx) from None
        return super().resolve_command(ctx, args)


class Command(_Helpful, TyperCommand):
    """A command whose usage line shows plain names, `[…]` around optional ones."""

    tail: tuple[str, ...] = ()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Parse; every error knows the command it belongs to."""
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            if vars(error).get("ctx") is None:
                vars(error)["ctx"] = ctx
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401
        """Return the words of the usage line."""
        pieces = super().collect_usage_pieces(ctx)
        return [piece.strip("{}") for piece in pieces] + list(self.tail)


class SplitCommand(Command):
    """A command whose words after the first `--` are a command of the user's.

    They are kept in `ctx.meta["command"]`, untouched.
    """

    tail = ("[-- CMD [ARG]...]",)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Split, then parse what stands before."""
        if "--" in args:
            at = args.index("--")
            ctx.meta["command"] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)
