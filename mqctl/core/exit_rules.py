"""What a command's exit status means.

| status | verdict |
|---|---|
| 0 | success |
| 65, 100 | dead letter |
| 99 | success, then the consumer stops |
| 126, 127 | the command cannot be started |
| any other, or a signal | retry, as 75 and 111 ask for |
"""

import re
from dataclasses import dataclass
from enum import Enum

from mqctl.core.errors import BadUsage
from mqctl.core.units import duration_ms

_RULE = re.compile(
    r"(?P<low>[0-9]{1,3})(?:-(?P<high>[0-9]{1,3}))?"
    r"=(?P<word>[a-z]+)(?P<colon>:(?P<delay>.*))?"
)
_STATUS_MAX = 255


class Verdict(Enum):
    """What the status says about the message, or about the command."""

    SUCCESS = "success"
    RETRY = "retry"
    DEAD = "dead"
    STOP = "stop"  # success, and the consumer drains afterwards
    BROKEN = "broken"  # the command cannot be started: not the message's fault


@dataclass(frozen=True, slots=True)
class Rule:
    """Statuses `low` to `high`, both included, mean `verdict`.

    `delay_ms` overrides the backoff of a retry; None leaves it.
    """

    low: int
    high: int
    verdict: Verdict
    delay_ms: int | None = None


_WORDS = {v.value: v for v in Verdict if v is not Verdict.BROKEN}
_ANYTHING_ELSE = Rule(0, _STATUS_MAX, Verdict.RETRY)
_DEFAULTS = (
    Rule(0, 0, Verdict.SUCCESS),
    Rule(65, 65, Verdict.DEAD),
    Rule(100, 100, Verdict.DEAD),
    Rule(99, 99, Verdict.STOP),
    Rule(126, 127, Verdict.BROKEN),
)


def parse_map(text: str) -> tuple[Rule, ...]:
    """Read `STATUS[-STATUS]=WORD[:DURATION]`, parts separated by commas.

    The words are success, retry, dead and stop; only retry takes a duration.
    Raises BadUsage naming the part that cannot be read.
    """
    return tuple(_parse_rule(part.strip()) for part in text.split(","))


def verdict(
    exit_code: int | None, signal: int | None, rules: tuple[Rule, ...] = ()
) -> Rule:
    """Return the first rule that covers the status: `rules`, then the defaults.

    A death by signal (`exit_code` None) is a retry whatever the rules say.
    """
    if exit_code is None or signal is not None:
        return _ANYTHING_ELSE
    every = (*rules, *_DEFAULTS)
    return next((r for r in every if r.low <= exit_code <= r.high), _ANYTHING_ELSE)


def _parse_rule(part: str) -> Rule:
    found = _RULE.fullmatch(part)
    if not found:
        raise _bad(part, "expected STATUS[-STATUS]=WORD, for example 3=dead")
    low = int(found["low"])
    high = int(found["high"] or low)
    if not low <= high <= _STATUS_MAX:
        raise _bad(part, f"statuses go upwards from 0 to {_STATUS_MAX}")
    word = _WORDS.get(found["word"])
    if word is None:
        raise _bad(part, f"the words are {', '.join(_WORDS)}")
    if not found["colon"]:
        return Rule(low, high, word)
    if word is not Verdict.RETRY:
        raise _bad(part, "only retry takes a duration")
    return Rule(low, high, word, _delay(part, found["delay"]))


def _delay(part: str, text: str) -> int:
    try:
        return duration_ms(text)
    except BadUsage as error:
        raise _bad(part, error.message, error.hint) from error


def _bad(part: str, why: str, hint: str | None = None) -> BadUsage:
    return BadUsage(f"exit status rule {part!r}: {why}", hint=hint, value=part)
