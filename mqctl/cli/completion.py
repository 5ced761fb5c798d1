"""Completion scripts with the command tree in them.

Pressing TAB starts no process of ours: the shell knows all words itself. Each script
walks the words before the cursor to the command they name, offers the values of an
option that wants one, else options after a dash and commands without one.
"""

from collections import defaultdict
from collections.abc import Iterator

from mqctl.cli.docs import FILES, Node, Option


def scripts(root: Node) -> dict[str, str]:
    """Return the scripts by file name."""
    nodes = list(root.walk())
    return {
        "mqctl.bash": _bash(nodes),
        "mqctl.zsh": _zsh(nodes),
        "mqctl.fish": _fish(nodes),
    }


_FILE = ("", "file")
_NOTHING = ("", "nothing")


def _action(option: Option) -> tuple[str, ...]:
    """Return the values to offer, or that a file or nothing known is wanted."""
    return option.choices or (_FILE if option.metavar in FILES else _NOTHING)


def _values(nodes: list[Node]) -> Iterator[tuple[list[str], tuple[str, ...]]]:
    """Yield shell patterns of `command --option` and what such an option wants."""
    wants: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for node in nodes:
        for option in node.options:
            for name in option.names if option.metavar else ():
                wants[name][node.path] = _action(option)
    patterns: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, by_path in wants.items():
        if len(set(by_path.values())) == 1:
            patterns[next(iter(by_path.values()))].append(f"*' {name}'")
        else:
            for path, action in by_path.items():
                patterns[action].append(f"'{path} {name}'")
    for action, found in patterns.items():
        yield found, action


def _names(node: Node) -> Iterator[tuple[str, str]]:
    for option in node.options:
        for name in option.names:
            yield name, option.help


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _paths(nodes: list[Node]) -> str:
    return " | ".join(_quoted(node.path) for node in nodes[1:])


def _bash(nodes: list[Node]) -> str:
    values: dict[tuple[str, ...], str] = {
        _FILE: "_mqctl_files; return",
        _NOTHING: "return",
    }
    wanted = "\n".join(
        f"    {' | '.join(patterns)})\n"
        f"      {values.get(action, f'words={_quoted(_lines(action))}')} ;;"
        for patterns, action in _values(nodes)
    )
    words = "\n".join(
        f"      {_quoted(node.path)})\n"
        f"        commands={_quoted(_lines(child.name for child in node.children))}\n"
        f"        options={_quoted(_lines(name for name, _ in _names(node)))} ;;"
        for node in nodes
    )
    return f"""\
# Completion of mqctl for bash. Written by mqctl docs.
_mqctl_files() {{
  COMPREPLY=($(compgen -f -- "$cur"))
  compopt -o filenames 2>/dev/null  # not in bash 3
}}
_mqctl() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}}
  local at=mqctl words='' commands='' options='' word i IFS=$'\\n'
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    if [[ $word == -- ]]; then
      COMPREPLY=($(compgen -f -c -- "$cur"))
      return
    fi
    case "$at $word" in
      {_paths(nodes)})
        at="$at $word" ;;
    esac
  done
  if [[ $cur == = ]]; then
    cur=''
  elif [[ $prev == = ]]; then
    prev=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  case "$at $prev" in
{wanted}
    *)
      case $at in
{words}
      esac
      words=$commands
      [[ $cur != -* ]] || words=$options ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -F _mqctl mqctl
"""


def _lines(words: "Iterator[str] | tuple[str, ...]") -> str:
    return "\n".join(words)


def _zsh(nodes: list[Node]) -> str:
    values: dict[tuple[str, ...], str] = {_FILE: "_files", _NOTHING: "_message value"}
    wanted = "\n".join(
        f"    ({' | '.join(patterns)})\n"
        f"      {values.get(action, f'compadd -- {_spaced(action)}')}; return ;;"
        for patterns, action in _values(nodes)
    )
    words = "\n".join(
        f"    ({_quoted(node.path)})\n"
        f"      commands=({_described((c.name, c.summary) for c in node.children)})\n"
        f"      options=({_described(_names(node))}) ;;"
        for node in nodes
    )
    return f"""\
#compdef mqctl
# Completion of mqctl for zsh. Written by mqctl docs.
_mqctl() {{
  local at=mqctl word prev=${{words[CURRENT-1]}}
  local -a commands options
  for word in ${{words[2,CURRENT-1]}}; do
    if [[ $word == -- ]]; then
      _alternative 'commands:command:_command_names -e' 'files:file:_files'
      return
    fi
    case "$at $word" in
      ({_paths(nodes)})
        at="$at $word" ;;
    esac
  done
  if [[ $PREFIX == --*=* ]]; then
    prev=${{PREFIX%%=*}}
    compset -P 1 '*='
  fi
  case "$at $prev" in
{wanted}
  esac
  case $at in
{words}
  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o option options
  else
    _describe command commands
  fi
}}
if [[ ${{funcstack[1]}} == _mqctl ]]; then
  _mqctl "$@"
else
  compdef _mqctl mqctl
fi
"""


def _spaced(words: tuple[str, ...]) -> str:
    return " ".join(map(_quoted, words))


def _described(pairs: Iterator[tuple[str, str]]) -> str:
    escaped = (f"{name.replace(':', chr(92) + ':')}:{text}" for name, text in pairs)
    return "".join(f"\n        {_quoted(text)}" for text in escaped)


def _fish(nodes: list[Node]) -> str:
    leaves = [node for node in nodes if not node.children]
    common = [o for o in leaves[0].options if all(o in n.options for n in leaves)]
    lines = [_fish_option(option, "__mqctl_leaf") for option in common]
    for node in nodes:
        here = f"__mqctl_at {_fish_quoted(node.path)}"
        lines += [
            f"complete -c mqctl -n {_fish_quoted(here)} -a {_fish_quoted(child.name)} "
            f"-d {_fish_quoted(child.summary)}"
            for child in node.children
        ]
        lines += [
            _fish_option(option, here)
            for option in node.options
            if node.children or option not in common
        ]
    paths = " ".join(_fish_quoted(node.path) for node in nodes[1:])
    groups = " ".join(_fish_quoted(node.path) for node in nodes if node.children)
    return f"""\
# Completion of mqctl for fish. Written by mqctl docs.
function __mqctl_path
    set -l at mqctl
    for word in (commandline -opc)[2..-1]
        if test "$word" = --
            return
        end
        if contains -- "$at $word" {paths}
            set at "$at $word"
        end
    end
    echo $at
end
function __mqctl_at
    set -l at (__mqctl_path)
    test "$at" = "$argv"
end
function __mqctl_leaf
    set -l at (__mqctl_path)
    test -n "$at"; and not contains -- "$at" {groups}
end
function __mqctl_command
    set -l at (__mqctl_path)
    test -z "$at"
end
complete -c mqctl -f
complete -c mqctl -n __mqctl_command -F -a '(complete -C (commandline -ct))'
{_lines(tuple(lines))}
"""


def _fish_option(option: Option, condition: str) -> str:
    parts = ["complete -c mqctl -n", _fish_quoted(condition)]
    parts += (
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
        for name in option.names
    )
    if option.metavar:
        action = _action(option)
        parts.append("-r -F" if action == _FILE else "-x")
        if option.choices:
            parts.append(f"-a {_fish_quoted(' '.join(action))}")
    parts.append(f"-d {_fish_quoted(option.help)}")
    return " ".join(parts)


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
