"""Man pages: one for mqctl, one for each command; a group's has all of its own."""

from collections.abc import Iterable, Iterator, Mapping

from mqctl import __version__
from mqctl.cli.docs import Node, Option

_EXIT = {
    "0": "Done; also when the reader closed the pipe.",
    "1": "Failed.",
    "2": "The command line cannot be meant.",
    "3": "Some items failed, the others are done.",
    "4": "Not found.",
    "5": "Nothing was received, only with --fail-if-empty.",
    "6": "Refused: needs --yes or --force, the name is in use, or it is unsafe.",
    "65": "Bad input data.",
    "66": "An input file is missing.",
    "69": "The server cannot be reached, is loading, or its cluster is down.",
    "70": "A bug in mqctl.",
    "74": "The output could not be written.",
    "75": "Timed out, not durable enough, or outcome unknown: running again loses "
    "nothing and may repeat the unknown ones.",
    "77": "Not permitted, or the password is wrong.",
    "78": "Bad configuration, or a handler that cannot start.",
    "129, 130, 143": "Ended by HUP, INT or TERM before everything was drained.",
}

_ENVIRONMENT = {
    "MQCTL_URL, REDIS_URL": "Where messages live, when --url is not given.",
    "MQCTL_PASSWORD": "The server's password, when the URL has none.",
    "MQCTL_DATA_DIR": "Where local servers keep their data.",
    "MQCTL_CONFIG": "The file of profiles, instead of the one below FILES.",
    "MQCTL_PROTECTED": "Whether what destroys asks for the topic's name: true, false.",
    "MQCTL_SERVER_BIN": "The valkey-server or redis-server to start for local.",
    "MQCTL_*": "Long options that read the environment name their variable below "
    "OPTIONS. Lists are separated by blanks. The command line goes first, then the "
    "environment, then the profile.",
    "NO_COLOR, FORCE_COLOR, TERM": "Whether a terminal gets colours.",
    "MQCTL_DEBUG": "When set, a bug in mqctl is shown with its traceback.",
}

_FILES = {
    "~/.config/mqctl/config.toml": "Profiles; on macOS below ~/Library/Application "
    "Support. MQCTL_CONFIG chooses another file; mqctl config path prints it.",
    "~/.local/share/mqctl/servers/NAME": "Data, log and socket of the local server "
    "NAME; on macOS below ~/Library/Application Support. MQCTL_DATA_DIR chooses "
    "another place; mqctl server path prints it.",
}


def pages(root: Node) -> dict[str, str]:
    """Return the pages by file name."""
    nodes = [root, *root.children]
    names = [node.path.replace(" ", "-") for node in nodes]
    return {
        f"{name}.1": "\n".join(_page(node, [n for n in names if n != name])) + "\n"
        for node, name in zip(nodes, names, strict=True)
    }


def _page(node: Node, others: list[str]) -> Iterator[str]:
    title = node.path.replace(" ", "-")
    yield r".\" Written by mqctl docs."
    yield f'.TH {title.upper()} 1 "" "mqctl {__version__}" "User Commands"'
    yield ".SH NAME"
    yield rf"{_text(title)} \- {_text(node.summary.rstrip('.'))}"
    yield ".SH SYNOPSIS"
    for part in node.children if " " in node.path else (node,):
        yield rf"\fB{_text(part.path)}\fR {_text(part.usage)}"
        yield ".br"
    yield ".SH DESCRIPTION"
    yield from _paragraphs(node.text)
    if " " not in node.path:
        yield ".SH COMMANDS"
        yield from _list({child.path: child.summary for child in node.children})
    elif node.children:
        yield from _group(node)
    else:
        yield from _command(node, "SH")
    yield ".SH EXIT STATUS"
    yield from _list(_EXIT)
    yield ".SH ENVIRONMENT"
    yield from _list(_ENVIRONMENT)
    yield ".SH FILES"
    yield from _list(_FILES)
    yield ".SH SEE ALSO"
    yield ", ".join(rf"\fB{_text(name)}\fR(1)" for name in others)


def _group(node: Node) -> Iterator[str]:
    common = _shared(node.children)
    for child in node.children:
        yield f'.SH "{_text(child.path)}"'
        yield rf"\fB{_text(child.path)}\fR {_text(child.usage)}"
        yield ".PP"
        yield from _paragraphs(child.text)
        own = [option for option in child.options if option not in common]
        yield from _list(dict(child.arguments))
        yield from _options(own)
        yield from _example(child)
    yield ".SH OPTIONS OF ALL COMMANDS"
    yield from _options(common)


def _shared(nodes: Iterable[Node]) -> list[Option]:
    first, *rest = nodes
    return [o for o in first.options if all(o in node.options for node in rest)]


def _command(node: Node, section: str) -> Iterator[str]:
    if node.arguments:
        yield f".{section} ARGUMENTS"
        yield from _list(dict(node.arguments))
    yield f".{section} OPTIONS"
    yield from _options(node.options)
    if node.example:
        yield f".{section} EXAMPLE"
        yield from _example(node)


def _options(options: Iterable[Option]) -> Iterator[str]:
    for option in options:
        names = ", ".join(rf"\fB{_text(name)}\fR" for name in option.names)
        value = option.metavar.strip("<>")
        yield ".TP"
        yield names + (rf" \fI{_text(value)}\fR" if value else "")
        notes = [option.help]
        if option.required:
            notes.append("Required.")
        if option.default:
            notes.append(f"Default: {option.default}.")
        if option.environment:
            notes.append(f"Environment: {', '.join(option.environment)}.")
        yield _text(" ".join(notes))


def _example(node: Node) -> Iterator[str]:
    if node.example:
        yield from (".PP", ".nf", ".RS 4", _text(node.example), ".RE", ".fi")


def _list(entries: Mapping[str, str]) -> Iterator[str]:
    for name, text in entries.items():
        yield ".TP"
        yield rf"\fB{_text(name)}\fR"
        yield _text(text)


def _paragraphs(text: str) -> Iterator[str]:
    for i, paragraph in enumerate(text.split("\n\n")):
        if i:
            yield ".PP"
        yield _text(" ".join(paragraph.split()))


def _text(text: str) -> str:
    """Escape what roff would take for its own."""
    safe = text.replace("\\", r"\e").replace("-", r"\-").replace("~", r"\(ti")
    safe = safe.replace("'", r"\(aq").replace("^", r"\(ha").replace("`", r"\(ga")
    return rf"\&{safe}" if safe.startswith(".") else safe
