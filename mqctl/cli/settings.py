"""Options as settings: their keys, what a profile says of them, and who wins."""

import os
from typing import TYPE_CHECKING, Any

import typer

from mqctl.config import file, keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mqctl.config.profiles import Profile, Profiles
    from mqctl.config.resolve import Setting
    from mqctl.config.values import Kind, Value

VARIABLE = "MQCTL_"

_ORIGINS: dict[str, keys.Origin] = {
    "COMMANDLINE": "flag",
    "ENVIRONMENT": "env",
    "DEFAULT_MAP": "profile",
}


def use_profile(context: typer.Context, name: str | None) -> str | None:
    """Let the profile's values stand in for the defaults of the command parsed.

    The commands that mend profiles go without. BadConfig for a profile that does not
    exist or says what cannot be.
    """
    path = file.location(os.environ)
    if context.resilient_parsing or _path(context).startswith("config "):
        return name
    if name or file.exists(path):
        profile = load(path).select(name)
        context.meta["profile"] = profile
        context.default_map = defaults(list(of_command(context)), profile)
        if isinstance(context.obj, dict):  # how errors are told is not ours to decide
            found = context.default_map
            context.obj["output"] = found.get("output") or found.get("print_what")
    return name


def load(path: str) -> "Profiles":
    """Return the profiles of a file that need not exist; BadConfig when it is bad."""
    from mqctl.config.profiles import Profiles, parse
    from mqctl.config.values import has_password
    from mqctl.core.errors import BadConfig

    if not file.exists(path):
        return Profiles()
    text, open_to_others = file.read(path)
    try:
        profiles = parse(text)
    except BadConfig as error:
        raise BadConfig(
            f"the config file {path}: {error.message}", hint=error.hint
        ) from None
    urls = (table.get("url") for table in profiles.tables.values())
    if open_to_others and any(isinstance(u, str) and has_password(u) for u in urls):
        from mqctl.cli.context import say

        say(f"others can read the password in the config file: chmod 600 {path}")
    return profiles


def defaults(settings: "list[Setting]", profile: "Profile") -> "dict[str, Value]":
    """Return the values a profile gives, by parameter; BadConfig for a wrong one."""
    from dataclasses import replace

    from mqctl.config.resolve import resolve

    checked = replace(profile, values=check_values(settings, profile))
    found = (
        resolve(s, flags={}, environ=os.environ, profile=checked.values)
        for s in settings
    )
    return {
        r.setting.parameter: r.value
        for r in found
        if r.origin == "profile" and r.value is not None
    }


def check_values(settings: "list[Setting]", profile: "Profile") -> "dict[str, Value]":
    """Return those values of a profile that concern the settings, by key."""
    from mqctl.config.values import check
    from mqctl.core.errors import BadConfig

    try:
        return {
            s.key: check(s.key, s.kind, profile.values[s.key])
            for s in settings
            if s.key in profile.values
        }
    except BadConfig as error:
        raise BadConfig(
            f"profile {profile.name}: {error.message}", hint=error.hint
        ) from None


def of_command(context: Any) -> "Iterator[Setting]":  # noqa: ANN401
    """Yield the settings of the command a (typer) context is of."""
    from mqctl.config.resolve import Setting

    command = _path(context)
    for found in context.command.params:
        key = _key(found)
        if key in keys.COMMON or (key and command in keys.COMMANDS):
            names, kind = _environment(found), _kind(found)
            yield Setting(command, key, found.name, names, kind, found.default)


def yield_to_stronger(context: typer.Context, given: dict[str, Any]) -> None:
    """Give rivals of an option that stands nearer to the call their defaults."""
    found = {_key(p): p for p in context.command.params if _key(p)}
    stated = {
        key: origin
        for key, parameter in found.items()
        if (origin := origin_of(context, parameter.name or "")) != "default"
    }
    for key in keys.overruled(stated):
        given[found[key].name or ""] = found[key].default


def flags(context: typer.Context) -> "dict[str, Value]":
    """Return the options of all commands that stand on the command line, by key."""
    return {
        key: context.params[parameter.name or ""]
        for parameter in context.command.params
        if (key := _key(parameter)) in keys.COMMON
        and origin_of(context, parameter.name or "") == "flag"
    }


def origin_of(context: typer.Context, parameter: str) -> keys.Origin:
    """Tell where the value of a parameter is from."""
    source = context.get_parameter_source(parameter)
    return _ORIGINS.get(source.name, "default") if source else "default"


def _path(context: Any) -> str:  # noqa: ANN401
    """Return the words of the command, without the program's name."""
    return str(context.command_path).partition(" ")[2]


def _environment(parameter: Any) -> tuple[str, ...]:  # noqa: ANN401
    names = parameter.envvar or ()
    return (names,) if isinstance(names, str) else tuple(names)


def _key(parameter: Any) -> str:  # noqa: ANN401
    """Return the key of an option; empty when it is no setting."""
    name = next(iter(_environment(parameter)), "")
    key = name.removeprefix(VARIABLE).lower()
    return "" if key == "profile" else key


def _kind(parameter: Any) -> "Kind":  # noqa: ANN401
    from mqctl.config.values import Kind

    units: Mapping[str | None, Any] = {"DUR": "duration", "SIZE": "size", "N/s": "rate"}
    if getattr(parameter, "is_flag", False):
        return Kind("switch")
    if parameter.multiple:
        return Kind("list")
    if parameter.type.name == "int":
        return Kind("number")
    choices = tuple(getattr(parameter.type, "choices", ()))
    return Kind(units.get(parameter.metavar, "text"), choices)
