"""Transcripts in documents: the commands after `$ `, and what they print."""

import os
import re
import subprocess
import termios
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MASKS = [
    (re.compile(pattern), name)
    for pattern, name in (
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b", "UUID"),
        (r"\bconsumer-[0-9a-f]{8}\b", "CONSUMER"),
        (r"\b\d{13}-\d+\b", "ID"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", "TIME"),
        (r'(_ms":)\d+', r"\1MS"),
        (r"\bpid \d+", "pid PID"),
        (r"\b(\d+(\.\d+)?(ms|s|m|h))+\b", "AGE"),
        (r" {2,}", "  "),  # columns are as wide as what was masked
        (r"─+", "─"),
    )
]


@dataclass(frozen=True, slots=True)
class Step:
    """One command and the text that follows it in the document."""

    command: str
    output: str


def steps(document: str) -> list[Step]:
    """Return the steps of all console blocks; `> ` goes on with a command."""
    found: list[Step] = []
    for block in _BLOCK.findall(document):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, newline, output = part.partition("\n")
            while output.startswith("> "):
                more, newline, output = output[2:].partition("\n")
                command = f"{command}\n{more}"
            found.append(Step(command, output if newline else ""))
    return found


def masked(text: str) -> str:
    """Return the text without what differs from run to run."""
    for pattern, name in _MASKS:
        text = pattern.sub(name, text)
    return text


def play(command: str, cwd: Path, env: Mapping[str, str]) -> str:
    """Return what a terminal of 80 columns shows when a command is run there."""
    ours, terminal = os.openpty()
    termios.tcsetwinsize(ours, (24, 80))
    with subprocess.Popen(
        ["bash", "-c", command],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        shown = b""
        while data := _read(ours):
            shown += data
        os.close(ours)
        process.wait(timeout=60)
    return shown.decode().replace("\r\n", "\n")


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 1 << 16)
    except OSError:  # how a terminal ends whose last program has gone
        return b""
