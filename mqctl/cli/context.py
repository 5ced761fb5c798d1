"""The command line's own world: streams, environment, common options, a session."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from mqctl.cli.output import Output
from mqctl.core.errors import BadUsage, NoInput
from mqctl.core.keys import CONTROL, STREAM

if TYPE_CHECKING:
    from mqctl.engine.session import Session
    from mqctl.render.terminal import Terminal
    from mqctl.store.url import Endpoint

DEFAULT_URL = "local"
Color = Literal["auto", "always", "never"]


@dataclass(slots=True)
class Context:
    """What every command receives: the common options and what they lead to.

    `words` are what stood after `--`, for the commands that run one.
    """

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
        return parse_url(self.url or DEFAULT_URL, password=self._password(), tls=tls)

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


def confirm(context: Context, question: str, *, yes: bool) -> None:
    """Ask on a terminal, default No; elsewhere only `--yes` will do.

    Raises Refused without a yes.
    """
    from mqctl.core.errors import Refused

    if yes:
        return
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused("not done: this needs --yes", hint="--dry-run shows the plan")
    context.warn(question)
    sys.stderr.write("Go on? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Refused("not done")


def at_least(name: str, value: int, least: int) -> int:
    """Return the value; BadUsage below the least."""
    if value < least:
        raise BadUsage(f"{name} must be at least {least}, not {value}")
    return value
