"""Profiles: named sets of settings, from a file's text to the one that is used."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mqctl.config import toml
from mqctl.config.keys import check_key, meant
from mqctl.config.values import Value
from mqctl.core.errors import BadConfig

DEFAULT = "default"

# Always there; a table of the same name in the file adds to them. `starter` has the
# values of the Spring starter. Its read-count is the default of `consume --batch`, and
# as a setting would slow `produce`.
BUILT_IN: Mapping[str, Mapping[str, Value]] = {
    DEFAULT: {},
    "starter": {
        "poll": "2s",
        "max_attempts": 3,
        "claim_idle": "60s",
        "claim_interval": "30s",
        "keep": 100_000,
        "keep_interval": "60s",
    },
}


@dataclass(frozen=True, slots=True)
class Profile:
    """The settings that go with a name; every key is known, values are not checked."""

    name: str = DEFAULT
    values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Profiles:
    """What a file holds: `tables` as written, and which is used when none is named."""

    current: str = DEFAULT
    tables: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Return all names, those of the built-in ones too."""
        return sorted({*BUILT_IN, *self.tables})

    def values(self, name: str) -> dict[str, Value]:
        """Return the settings of a profile, unknown keys too; BadConfig for no such."""
        if name not in self.names:
            near = meant(name, frozenset(self.names))
            raise BadConfig(f"no such profile: {name}{near}", hint="mqctl config list")
        return {**BUILT_IN.get(name, {}), **self.tables.get(name, {})}

    def select(self, name: str | None) -> Profile:
        """Return the profile of that name, or the current one; BadConfig for typos."""
        chosen = name or self.current
        found = Profile(chosen, self.values(chosen))
        for key in found.values:
            try:
                check_key(key)
            except BadConfig as error:
                raise BadConfig(f"profile {chosen}: {error.message}") from None
        return found

    def with_value(self, profile: str, key: str, value: Value | None) -> "Profiles":
        """Return them with one setting changed; None removes it."""
        table = {k: v for k, v in self.tables.get(profile, {}).items() if k != key}
        if value is not None:
            table[key] = value
        return replace(self, tables={**self.tables, profile: table})


def parse(text: str) -> Profiles:
    """Return what a file says; BadConfig for text that is not such a file."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"it is not TOML: {error}") from None
    for key in found:
        if key not in {"current", "profiles"}:
            raise BadConfig(
                f"{key} stands in no profile",
                hint="settings stand below a line such as [profiles.default]",
            )
    current, tables = found.get("current", DEFAULT), found.get("profiles", {})
    if not isinstance(current, str):
        raise BadConfig("current must be the name of a profile")
    if not isinstance(tables, dict):
        raise BadConfig("profiles must be tables: [profiles.NAME]")
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise BadConfig(f"profiles.{name} must be a table: [profiles.{name}]")
    return Profiles(current, tables)


def set_value(text: str, profile: str, key: str, value: Value | None) -> str:
    """Return a file's text with one setting changed; None removes it.

    Comments stay, unless the file is written in a way that only a whole new one can
    change.
    """
    return _changed(
        parse(text).with_value(profile, key, value),
        toml.edited(text, profile, key, value),
    )


def set_current(text: str, profile: str) -> str:
    """Return a file's text with another current profile; comments as above."""
    return _changed(
        replace(parse(text), current=profile),
        toml.edited(text, None, "current", profile),
    )


def _changed(wanted: Profiles, edited: str) -> str:
    for text in (edited, toml.document(wanted.current, wanted.tables)):
        try:
            if parse(text) == wanted:
                return text
        except BadConfig:
            continue
    raise BadConfig("the config file holds more than profiles: edit it by hand")
