"""mqctl docs: completions and man pages, written from the command tree.

The same tree gives the same bytes, on any machine and at any time.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mqctl.cli.context import Context
from mqctl.cli.options import EXAMPLE, command
from mqctl.core.errors import OutputFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = frozenset({"FILE", "PATH", "DIR"})


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `metavar` is empty for a flag; `default` for people."""

    names: tuple[str, ...]
    metavar: str
    choices: tuple[str, ...]
    help: str
    default: str
    environment: tuple[str, ...]
    required: bool


@dataclass(frozen=True, slots=True)
class Node:
    """A command or a group: what its help says, and the commands below it."""

    path: str
    usage: str
    text: str
    example: str
    arguments: tuple[tuple[str, str], ...]
    options: tuple[Option, ...]
    children: "tuple[Node, ...]"

    @property
    def name(self) -> str:
        """Return the last word of the path."""
        return self.path.rpartition(" ")[2]

    @property
    def summary(self) -> str:
        """Return the first paragraph, on one line."""
        return " ".join(self.text.partition("\n\n")[0].split())

    def walk(self) -> "Iterator[Node]":
        """Yield this node and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app, "docs", hidden=True)
    def docs(
        context: Context,
        directory: Annotated[
            Path,
            typer.Argument(
                help="Where completions/ and man/ are written.", metavar="DIR"
            ),
        ],
    ) -> None:
        """Write shell completions and man pages from the command tree.

        Example: mqctl docs build
        """
        from mqctl.cli import commands, completion, man

        root = tree(commands.app)
        written = {f"completions/{k}": v for k, v in completion.scripts(root).items()}
        written |= {f"man/{name}": page for name, page in man.pages(root).items()}
        try:
            for name, text in written.items():
                path = directory / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise OutputFailed(
                f"cannot write {error.filename}: {error.strerror}"
            ) from error
        context.note(f"{len(written)} files written to {directory}")


def tree(app: typer.Typer) -> Node:
    """Return the visible commands."""
    return _node(typer.main.get_command(app), "mqctl", None)


def _node(found: Any, name: str, parent: Any) -> Node:  # noqa: ANN401
    context = typer.Context(found, info_name=name, parent=parent)
    below = found.list_commands(context) if hasattr(found, "list_commands") else ()
    parameters = [p for p in found.get_params(context) if not p.hidden]
    return Node(
        path=context.command_path,
        usage=" ".join(found.collect_usage_pieces(context)),
        text=(found.help or "").strip(),
        example=(found.epilog or "").partition(EXAMPLE)[2].strip(),
        arguments=tuple(
            (p.make_metavar(ctx=context), p.help or "")
            for p in parameters
            if p.param_type_name == "argument"
        ),
        options=tuple(
            _option(p, context) for p in parameters if p.param_type_name == "option"
        ),
        children=tuple(
            _node(child, name, context)
            for name in below
            if not (child := found.get_command(context, name)).hidden
        ),
    )


def _option(found: Any, context: Any) -> Option:  # noqa: ANN401
    takes_none = found.is_flag or found.count
    record = found.get_help_record(context)[1]
    shown = re.search(r"\[default: \(?(.*?)\)?(; required)?\]$", record, re.DOTALL)
    given = found.envvar or ()
    return Option(
        names=(*found.opts, *found.secondary_opts),
        metavar="" if takes_none else found.make_metavar(ctx=context),
        choices=tuple(getattr(found.type, "choices", ())),
        help=found.help or "",
        default=shown[1].replace("\n", "\\n") if shown else "",
        environment=(given,) if isinstance(given, str) else tuple(given),
        required=found.required,
    )
