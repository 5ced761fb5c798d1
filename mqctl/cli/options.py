"""Options that several commands share, declared once.

`command` registers a function whose first parameter is the Context; the common
options are added to its signature, and the example at the end of its docstring goes
to the end of its help. Every long option is also read from the environment, as
MQCTL_ and its name in capitals, and from the profile (mqctl.cli.settings).
"""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand
from typer.models import OptionInfo

from mqctl.cli.context import DEFAULT_URL, Color, Context
from mqctl.cli.group import Command
from mqctl.cli.settings import flags, use_profile, yield_to_stronger
from mqctl.core.keys import CONTROL, STREAM

EXAMPLE = "Example:"

Duration = Annotated[str, "DUR"]
Size = Annotated[str, "SIZE"]
"""Text with a unit; the mark is its place holder in help texts."""


def flag(*names: str, help: str, **more: Any) -> Any:  # noqa: A002, ANN401
    """Declare an option that is a setting: readable from environment and profile.

    Its key follows its environment name; give `envvar` where another command has an
    option of the same name that means something else.
    """
    word = _long(names).removeprefix("--").replace("-", "_").upper()
    more.setdefault("envvar", f"MQCTL_{word}")
    return typer.Option(*names, help=help, show_envvar=False, **more)


def _long(names: Iterable[str]) -> str:
    """Return the name with two dashes, the positive one of a pair."""
    return next(name for name in names if name.startswith("--")).split("/")[0]


def switch(*names: str, help: str, **more: Any) -> Any:  # noqa: A002, ANN401
    """Declare an option that belongs to one call and has no environment name."""
    return typer.Option(*names, help=help, **more)


ProfileName = Annotated[
    str | None,
    flag(
        "--profile",
        help="Take the settings of this profile.",
        metavar="NAME",
        show_default="the current one",
        is_eager=True,  # what it says are the defaults of all others
        callback=use_profile,
    ),
]
Url = Annotated[
    str,
    flag(
        "--url",
        "-u",
        help="Where messages live: local, redis://, rediss://, valkey://, unix://.",
        envvar=["MQCTL_URL", "REDIS_URL"],
        metavar="URL",
    ),
]
PasswordFile = Annotated[
    str | None,
    flag(
        "--password-file", help="File whose first line is the password.", metavar="FILE"
    ),
]
TlsCa = Annotated[
    str | None, flag("--tls-ca", help="PEM file of the authority.", metavar="FILE")
]
TlsCert = Annotated[
    str | None, flag("--tls-cert", help="PEM file of our certificate.", metavar="FILE")
]
TlsKey = Annotated[
    str | None, flag("--tls-key", help="PEM file of our key.", metavar="FILE")
]
Insecure = Annotated[
    bool, flag("--insecure", help="Do not verify the server's certificate.")
]
KeyPrefix = Annotated[
    str, flag("--key-prefix", help="Prefix of control keys.", metavar="PREFIX")
]
StreamKeyPrefix = Annotated[
    str, flag("--stream-key-prefix", help="Prefix of streams.", metavar="PREFIX")
]
EnvName = Annotated[
    str | None,
    flag("--env", help="Add _NAME to every topic name.", metavar="NAME"),
]
Quiet = Annotated[bool, flag("--quiet", "-q", help="No notes, no summary.")]
Verbose = Annotated[
    int, switch("--verbose", "-v", help="Say more.", count=True, show_default=False)
]
ColorWhen = Annotated[
    Color, flag("--color", help="Colours on a terminal: auto, always, never.")
]

_COMMON: dict[str, tuple[Any, Any]] = {
    "profile_name": (ProfileName, None),
    "url": (Url, DEFAULT_URL),
    "password_file": (PasswordFile, None),
    "tls_ca": (TlsCa, None),
    "tls_cert": (TlsCert, None),
    "tls_key": (TlsKey, None),
    "insecure": (Insecure, False),
    "key_prefix": (KeyPrefix, CONTROL),
    "stream_key_prefix": (StreamKeyPrefix, STREAM),
    "env_name": (EnvName, None),
    "quiet": (Quiet, False),
    "verbose": (Verbose, 0),
    "color": (ColorWhen, "auto"),
}


def command(
    app: typer.Typer,
    name: str,
    *,
    cls: type[TyperCommand] = Command,
    hidden: bool = False,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command; its first parameter becomes the Context."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(*args: Any, **given: Any) -> None:  # noqa: ANN401
            typer_context = given.pop("typer_context")
            yield_to_stronger(typer_context, given)
            context = Context(**{key: given.pop(key) for key in _COMMON})
            context.flags = flags(typer_context)
            context.profile = typer_context.meta.get("profile")
            context.words = typer_context.meta.get("command")
            try:
                function(context, *args, **given)
            finally:
                context.close()

        run.__signature__ = _signature(function)  # type: ignore[attr-defined]
        run.__annotations__ = {
            p.name: p.annotation
            for p in run.__signature__.parameters.values()  # type: ignore[attr-defined]
        }
        text, _, example = inspect.cleandoc(function.__doc__ or "").partition(EXAMPLE)
        app.command(
            name,
            cls=cls,
            help=text,
            epilog=f"\b\n{EXAMPLE}\n  {example.strip()}" if example else None,
            hidden=hidden,
        )(run)
        return function

    return register


def _signature(function: Callable[..., None]) -> inspect.Signature:
    hints = get_type_hints(function, include_extras=True)
    plain = get_type_hints(function)
    own = list(inspect.signature(function).parameters.values())[1:]
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("typer_context", keyword, annotation=typer.Context),
        *(
            p.replace(kind=keyword, annotation=_named(hints[p.name], plain[p.name]))
            for p in own
        ),
        *(
            inspect.Parameter(name, keyword, default=default, annotation=annotation)
            for name, (annotation, default) in _COMMON.items()
        ),
    ]
    return inspect.Signature(parameters)


def _named(annotation: Any, plain: Any) -> Any:  # noqa: ANN401
    """Give an option without a metavar one: its mark, N for a number, or its name."""
    option = get_args(annotation)[-1]
    if isinstance(option, OptionInfo) and option.metavar is None:
        mark = next(filter(None, map(_mark, (annotation, *get_args(annotation)))), None)
        kinds = {plain, *get_args(plain)}
        if mark:
            option.metavar = mark
        elif int in kinds:
            option.metavar = "N"
        elif str in kinds:
            names = (str(option.default), *(option.param_decls or ()))  # as in Typer
            option.metavar = _long(names).rpartition("-")[2].upper()
    return Annotated[plain, option]


def _mark(annotation: Any) -> str | None:  # noqa: ANN401
    """Return the text in an annotation such as Duration, or Duration or None."""
    for part in (annotation, *get_args(annotation)):
        for mark in getattr(part, "__metadata__", ()):
            if isinstance(mark, str):
                return mark
    return None


Topic = Annotated[str, typer.Argument(help="The topic.", metavar="TOPIC")]
Group = Annotated[str, typer.Argument(help="The consumer group.", metavar="GROUP")]
Yes = Annotated[bool, switch("--yes", "-y", help="Do it without asking.")]
DryRun = Annotated[bool, switch("--dry-run", help="Only show what would be done.")]
