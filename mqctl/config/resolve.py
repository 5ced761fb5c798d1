"""Where each value comes from: flag, then environment, then profile, then default."""

from collections.abc import Mapping
from dataclasses import dataclass

from mqctl.config.keys import Origin
from mqctl.config.values import Kind, Value, masked

PASSWORD = "MQCTL_PASSWORD"  # noqa: S105 - a name


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of one command.

    `parameter` is its name in the code; the first of the `environment` names that is
    set and not empty counts.
    """

    command: str
    key: str
    parameter: str
    environment: tuple[str, ...]
    kind: Kind
    default: Value | None


@dataclass(frozen=True, slots=True)
class Resolved:
    """The value a setting has, and where it is from."""

    setting: Setting
    value: Value | None
    origin: Origin

    @property
    def shown(self) -> Value | None:
        """Return the value without a password."""
        url = self.setting.key == "url" and isinstance(self.value, str)
        return masked(str(self.value)) if url else self.value


# Settings of the whole program, whether or not a command has such an option.
PROTECTED = Setting(
    "", "protected", "", ("MQCTL_PROTECTED",), Kind("switch"), default=False
)
FSYNC = Setting(
    "",
    "fsync",
    "fsync",
    ("MQCTL_FSYNC",),
    Kind("text", ("always", "everysec", "no")),
    default="always",
)


def resolve(
    setting: Setting,
    *,
    flags: Mapping[str, Value],
    environ: Mapping[str, str],
    profile: Mapping[str, Value],
) -> Resolved:
    """Decide the value of a setting. `flags` and `profile` are by key.

    Text from the environment stays text. A password in the environment is stronger
    than the password file of a profile.
    """
    key = setting.key
    if key in flags:
        return Resolved(setting, flags[key], "flag")
    for name in setting.environment:
        if environ.get(name):
            return Resolved(setting, environ[name], "env")
    hidden = key == "password_file" and environ.get(PASSWORD)
    if key in profile and not hidden:
        return Resolved(setting, profile[key], "profile")
    return Resolved(setting, setting.default, "default")
