"""The command line's own world: streams, environment, common options, a session."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from mqctl.cli.output import Output
from mqctl.core.errors import BadUsage, NoInput
from mqctl.core.keys import CONTROL, STREAM

if TYPE_CHECKING:
    from mqctl.config.profiles import Profile
    from mqctl.config.resolve import Setting
    from mqctl.config.values import Value
    from mqctl.engine.session import Session
    from mqctl.render.terminal import Terminal
    from mqctl.store.url import Endpoint

DEFAULT_URL = "local"
Color = Literal["auto", "always", "never"]


@dataclass(slots=True)
class Context:
    """What every command receives: the common options and what they lead to.

    `words` are what stood after `--`, for the commands that run one. `profile` is
    the one in use, which has given its values already; None without a file. `flags`
    are the common options on the command line, by key.
    """

    profile_name: str | None = None
    url: str = DEFAULT_URL
    password_file: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    insecure: bool = False
    key_prefix: str = CONTROL
    stream_key_prefix: str = STREAM
    env_name: str | None = None
    quiet: bool = False
    verbose: int = 0
    color: Color = "auto"
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    out: Output = field(default_factory=Output)
    words: list[str] | None = None
    profile: "Profile | None" = None
    flags: "Mapping[str, Value]" = field(default_factory=dict)
    _session: "Session | None" = None

    def session(self) -> "Session":
        """Return the open session; connects at the first call."""
        if self._session is None:
            from mqctl.core.keys import KeySpace
            from mqctl.engine.session import Session

            keys = KeySpace(self.key_prefix, self.stream_key_prefix)
            self._session = Session.open(self.endpoint(), keys=keys, started=self.note)
        return self._session

    def endpoint(self) -> "Endpoint":
        """Return the server's address; the password from URL, file or environment."""
        from mqctl.store.url import Tls, parse_url

        tls = Tls(self.tls_ca, self.tls_cert, self.tls_key, self.insecure)
        found = parse_url(self.url or DEFAULT_URL, password=self._password(), tls=tls)
        if found.local is None or not self._is_set("fsync"):
            return found
        from dataclasses import replace

        from mqctl.config.resolve import FSYNC

        fsync: Any = self._setting(FSYNC)  # one of its choices
        return replace(found, fsync=fsync)

    @property
    def protected(self) -> bool:
        """Tell whether what destroys must be confirmed by the topic's name."""
        if not self._is_set("protected"):
            return False
        from mqctl.config.resolve import PROTECTED

        return bool(self._setting(PROTECTED))

    def _is_set(self, key: str) -> bool:
        in_profile = self.profile is not None and key in self.profile.values
        return in_profile or bool(self.environ.get(f"MQCTL_{key.upper()}"))

    def _setting(self, setting: "Setting") -> "Value":
        """Return the value of a setting that is no option of this command."""
        from mqctl.config.resolve import resolve
        from mqctl.config.values import check, read

        profile = self.profile.values if self.profile else {}
        found = resolve(setting, flags={}, environ=self.environ, profile=profile)
        if found.origin == "env":
            return read(setting.key, setting.kind, [str(found.value)])
        return check(setting.key, setting.kind, found.value)

    def _password(self) -> str | None:
        if self.password_file is None:
            return self.environ.get("MQCTL_PASSWORD") or None
        try:
            with open(self.password_file, encoding="utf-8") as file:  # noqa: PTH123
                return file.readline().rstrip("\r\n")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise NoInput(
                f"cannot read the password file: {reason}", file=self.password_file
            ) from error

    def topic(self, name: str) -> str:
        """Return the full name of a topic given on the command line."""
        from mqctl.core.names import check_topic

        full = f"{name}_{self.env_name}" if self.env_name else name
        return check_topic(full)

    def pattern(self, text: str | None, *, glob: bool = False) -> str | None:
        """Return a pattern for full topic names, of a given one for short names."""
        if text is None or not self.env_name:
            return text
        if glob:
            return f"{text}_{self.env_name}"
        import re

        return f"(?:{text})_{re.escape(self.env_name)}"

    def note(self, text: str) -> None:
        """Say something on stderr, unless quiet."""
        if not self.quiet:
            say(text)

    def warn(self, text: str) -> None:
        """Say something on stderr that must not be missed."""
        say(text)

    def terminal(self) -> "Terminal":
        """Return what stdout can show."""
        from mqctl.render.terminal import terminal

        columns = None
        if self.out.isatty:
            try:
                columns = os.get_terminal_size(self.out.fd).columns
            except OSError:
                columns = None
        return terminal(
            self.environ, isatty=self.out.isatty, columns=columns, when=self.color
        )

    def close(self) -> None:
        """Close what was opened."""
        if self._session is not None:
            self._session.close()


def say(text: str) -> None:
    """Write one escaped line to stderr; a closed stderr is nobody's loss."""
    from mqctl.render.notes import note

    try:
        sys.stderr.write(note(text) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def confirm(context: Context, question: str, name: str, *, yes: bool) -> None:
    """Ask on a terminal, default No; elsewhere only `--yes` will do.

    In a protected profile the answer is `name`, and `--yes` is none. Raises Refused.
    """
    from mqctl.core.errors import Refused

    talks = sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()
    if context.protected:
        _confirm_by_name(context, question, name, talks=bool(talks))
        return
    if yes:
        return
    if not talks:
        raise Refused("not done: this needs --yes", hint="--dry-run shows the plan")
    context.warn(question)
    sys.stderr.write("Go on? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Refused("not done")


def _confirm_by_name(
    context: Context, question: str, name: str, *, talks: bool
) -> None:
    from mqctl.core.errors import Refused

    if not talks:
        raise Refused(
            "not done: the profile is protected, and nobody can be asked",
            hint="MQCTL_PROTECTED=false lifts that for one call",
        )
    context.warn(f"{question} The profile is protected.")
    sys.stderr.write(f"Type {name} to go on: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != name:
        raise Refused("not done")


def at_least(name: str, value: int, least: int) -> int:
    """Return the value; BadUsage below the least."""
    if value < least:
        raise BadUsage(f"{name} must be at least {least}, not {value}")
    return value
