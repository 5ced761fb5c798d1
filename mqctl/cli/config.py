"""mqctl config: profiles, and where each value comes from."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mqctl.cli import settings
from mqctl.cli.context import Context
from mqctl.cli.group import Group
from mqctl.cli.options import command
from mqctl.cli.records import OutputForm, show
from mqctl.config import file
from mqctl.config.keys import COMMANDS, COMMON, check_key, overruled
from mqctl.core.errors import BadConfig, BadUsage

if TYPE_CHECKING:
    from mqctl.config.profiles import Profile
    from mqctl.config.resolve import Resolved, Setting
    from mqctl.config.values import Value

Key = Annotated[
    str, typer.Argument(help="A long option's name, with _ for -.", metavar="KEY")
]

app = typer.Typer(
    cls=Group,
    help="Profiles: named sets of settings, kept in a file.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="config")


@command(app, "list")
def list_profiles(context: Context, output: OutputForm = None) -> None:
    """List the profiles.

    Example: mqctl config list
    """
    from mqctl.config.profiles import BUILT_IN

    found = settings.load(file.location(context.environ))
    current = context.profile_name or found.current
    rows: list[dict[str, object]] = [
        {
            "profile": name,
            "current": name == current,
            "built_in": name in BUILT_IN,
            "settings": len(found.values(name)),
        }
        for name in found.names
    ]
    show(context, rows, output)


@command(app, "show")
def show_profile(
    context: Context,
    name: Annotated[
        str | None,
        typer.Argument(help="The profile; none = the current one.", metavar="[NAME]"),
    ] = None,
    output: OutputForm = None,
) -> None:
    """Show what a profile sets; a password is shown as ***.

    Example: mqctl config show starter
    """
    from mqctl.config.values import masked

    found = settings.load(file.location(context.environ))
    chosen = name or context.profile_name or found.current
    rows: list[dict[str, object]] = [
        {
            "profile": chosen,
            "setting": key,
            "value": masked(str(value)) if key == "url" else value,
        }
        for key, value in sorted(found.values(chosen).items())
    ]
    show(context, rows, output)


@command(app, "set")
def set_value(
    context: Context,
    key: Key,
    values: Annotated[
        list[str],
        typer.Argument(
            help="The value; several for an option that repeats.", metavar="VALUE..."
        ),
    ],
) -> None:
    """Set a value in the current profile, or in the one of --profile.

    A profile that does not exist is created. The file is readable by you alone.

    Example: mqctl config set claim_idle 10m
    """
    from mqctl.store.url import parse_url

    key = key.replace("-", "_")
    try:
        value = _read(check_key(key), values)
        if key == "url":
            parse_url(str(value), tls=None)
    except BadConfig as error:
        raise BadUsage(error.message, hint=error.hint) from None
    _change(context, key, value)


@command(app, "unset")
def unset(context: Context, key: Key) -> None:
    """Remove a value from the current profile, or from the one of --profile.

    Example: mqctl config unset claim_idle
    """
    _change(context, key.replace("-", "_"), None)


@command(app, "use")
def use(
    context: Context,
    name: Annotated[str, typer.Argument(help="The profile.", metavar="NAME")],
) -> None:
    """Make a profile the current one; `default` is the one without settings.

    `starter` is built in: the values of the Spring starter.

    Example: mqctl config use starter
    """
    from mqctl.config.profiles import set_current

    path = file.location(context.environ)
    settings.load(path).values(name)
    file.write(path, set_current(_text(path), name))
    context.note(f"profile {name} is in use")


@command(app, "path")
def path(context: Context) -> None:
    """Print where the file is, or would be.

    Example: mqctl config path
    """
    context.out.text(file.location(context.environ))


@command(app, "explain")
def explain(
    context: Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="Only this command.", metavar="[COMMAND]...", show_default=False
        ),
    ] = None,
    output: OutputForm = None,
) -> None:
    """Tell each setting's value and where it is from: flag, env, profile or default.

    Example: mqctl config explain consume
    """
    found = settings.load(file.location(context.environ))
    profile = found.select(context.profile_name)
    rows: list[dict[str, object]] = []
    for name, group in _groups(words or []):
        rows += [
            {
                "command": name,
                "setting": resolved.setting.key,
                "value": resolved.shown,
                "origin": resolved.origin,
            }
            for resolved in _resolve(context, group, profile)
        ]
    show(context, rows, output)


def _groups(words: list[str]) -> "Iterator[tuple[str | None, list[Setting]]]":
    """Yield settings by command; without words those of all commands come first."""
    from mqctl.config.resolve import FSYNC, PROTECTED

    if words:
        for leaf in _leaves(_descend(words)):
            own = list(settings.of_command(leaf))
            yield own[0].command, [*own, PROTECTED]
        return
    leaves = [leaf for name in sorted(COMMANDS) if (leaf := _find(name.split()))]
    common = [s for s in settings.of_command(leaves[0]) if s.key in COMMON]
    yield None, [*common, FSYNC, PROTECTED]
    for leaf in leaves:
        own = [s for s in settings.of_command(leaf) if s.key not in COMMON]
        if own:
            yield own[0].command, own


def _resolve(
    context: Context, group: "list[Setting]", profile: "Profile"
) -> "list[Resolved]":
    from mqctl.config.resolve import Resolved, resolve

    checked = settings.check_values(group, profile)
    found = [
        resolve(s, flags=context.flags, environ=context.environ, profile=checked)
        for s in group
    ]
    silent = overruled(
        {r.setting.key: r.origin for r in found if r.origin != "default"}
    )
    return [
        Resolved(r.setting, r.setting.default, "default")
        if r.setting.key in silent
        else r
        for r in found
    ]


def _read(key: str, texts: list[str]) -> "Value":
    """Return the value as the first command takes it that does."""
    from mqctl.config.resolve import FSYNC, PROTECTED
    from mqctl.config.values import read

    leaves = [leaf for name in sorted(COMMANDS) if (leaf := _find(name.split()))]
    known = [FSYNC, PROTECTED]
    known += [s for leaf in leaves for s in settings.of_command(leaf)]
    refused: BadConfig | None = None
    for setting in known:
        if setting.key == key:
            try:
                return read(key, setting.kind, texts)
            except BadConfig as error:
                refused = refused or error
    raise refused or BadConfig(f"no command has the setting {key}")


def _change(context: Context, key: str, value: "Value | None") -> None:
    from mqctl.config.profiles import set_value as changed
    from mqctl.core.names import check_name

    path = file.location(context.environ)
    found = settings.load(path)
    name = check_name("profile", context.profile_name or found.current)
    if value is None and key not in found.tables.get(name, {}):
        raise BadUsage(f"profile {name} does not set {key}", hint="mqctl config show")
    file.write(path, changed(_text(path), name, key, value))
    context.note(f"{key} is {'no longer ' if value is None else ''}set in {name}")


def _text(path: str) -> str:
    return file.read(path)[0] if file.exists(path) else ""


def _descend(words: list[str]) -> Any:  # noqa: ANN401
    """Return the (typer) context of a command or group; BadUsage for no such."""
    found = _find(words)
    if found is None:
        raise BadUsage(f"no such command: {' '.join(words)}", hint="mqctl --help")
    return found


def _find(words: list[str]) -> Any:  # noqa: ANN401
    from mqctl.cli.commands import app as root

    found = typer.main.get_command(root)
    at = typer.Context(found, info_name="mqctl")
    for word in words:
        below = getattr(at.command, "get_command", None)
        child = below(at, word) if below else None
        if child is None:
            return None
        at = typer.Context(child, info_name=word, parent=at)
    return at


def _leaves(at: Any) -> Iterator[Any]:  # noqa: ANN401
    if not hasattr(at.command, "list_commands"):
        yield at
        return
    for name in at.command.list_commands(at):
        child = at.command.get_command(at, name)
        yield from _leaves(typer.Context(child, info_name=name, parent=at))


__all__ = ["app", "register"]
