r"""What a long-lived worker is told and what it answers. Pure: no processes here.

`ndjson`: one envelope with `seq` per line in; per line out, in any order,
`{"seq":17,"result":"success|retry|dead","delay_ms":1500,"reason":"..."}`. `delay_ms`
and `reason` may be null or left out, other fields are ignored. Several messages may
be in the worker's hands at once.

`lines`: one payload per line in; `ok`, `retry [DURATION] [REASON]` or `dead [REASON]`
per line out, in order. The next payload comes after the answer, so a worker that
reads ahead by blocks (mawk without `-W interactive`) or whose output waits in a
buffer (most programs writing to a pipe: flush, or `stdbuf -oL`) never gets on and
ends in the timeout.

The reason of a `retry` is free text and becomes the detail. That of a `dead` becomes
the dead letter's reason if it is one word of at most 64 characters, else its detail.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import orjson

from mqctl.core.errors import BadData, BadUsage
from mqctl.core.handler import SUCCESS, Outcome, Result
from mqctl.core.message import Delivery
from mqctl.core.units import duration_ms

WorkerProtocol = Literal["ndjson", "lines"]
Answer = tuple[int | None, Result]  # None: the only one it can be an answer to

_OUTCOMES = {"retry": Outcome.RETRY, "dead": Outcome.DEAD}
_LONGEST_DELAY = 10 * 365 * 86_400_000  # ms; more is a mistake in units
_LONGEST_WORD = 64
_SHOWN = 100  # bytes of a line that is no answer


class Nonsense(Exception):
    """A line that is no answer: one line that says why."""


class Encode(Protocol):
    """Makes the envelope: one JSON line with `seq`. BadData when it cannot."""

    def __call__(self, delivery: Delivery, /, *, seq: int) -> bytes:
        """Return the line, with its newline."""


@dataclass(frozen=True, slots=True)
class Language:
    """A protocol: how a delivery is said, how an answer is read.

    `say` raises BadData for what cannot be said, `read` Nonsense. `window` is the
    number of deliveries a worker may have in hand.
    """

    say: Callable[[Delivery, int], bytes]
    read: Callable[[bytes], Answer]
    window: int


def language(protocol: WorkerProtocol, encode: Encode | None, window: int) -> Language:
    """Return the protocol of that name; `lines` goes in lockstep, without `encode`.

    ValueError when `encode` is needed and missing.
    """
    if protocol == "lines":
        return Language(_payload_line, read_words, 1)
    if encode is None:
        raise ValueError("the ndjson protocol needs `encode`")
    return Language(lambda d, seq: encode(d, seq=seq), read_json, window)


def read_json(line: bytes) -> Answer:
    """Read an answer of the ndjson protocol. Raises Nonsense."""
    try:
        answer = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise _nonsense("not JSON", line) from None
    if not isinstance(answer, dict):
        raise _nonsense("not a JSON object", line)
    seq, word = answer.get("seq"), answer.get("result")
    if type(seq) is not int:
        raise _nonsense("no seq", line)
    if word == "success":
        return seq, SUCCESS
    if not isinstance(word, str) or word not in _OUTCOMES:
        raise _nonsense("result is none of success, retry, dead", line)
    delay, reason = answer.get("delay_ms"), answer.get("reason")
    if not (delay is None or (type(delay) is int and 0 <= delay <= _LONGEST_DELAY)):
        raise _nonsense("delay_ms is not a number of milliseconds", line)
    if not (reason is None or isinstance(reason, str)):
        raise _nonsense("reason is not a string", line)
    return seq, _result(word, delay, (reason or "").strip())


def read_words(line: bytes) -> Answer:
    """Read an answer of the lines protocol. Raises Nonsense.

    What follows `retry` is a delay if it can be read as one (`30s`), else part of the
    reason (`retry 503 from upstream`).
    """
    word, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
    rest = rest.strip()
    if word == "ok" and not rest:
        return None, SUCCESS
    if word not in _OUTCOMES:
        raise _nonsense("none of ok, retry, dead", line)
    if word == "dead":
        return None, _result(word, None, rest)
    first, _, reason = rest.partition(" ")
    try:
        return None, _result(word, duration_ms(first), reason.strip())
    except BadUsage:
        return None, _result(word, None, rest)


def _result(word: str, delay: int | None, reason: str) -> Result:
    if word == "retry":
        return Result(Outcome.RETRY, delay_ms=delay, detail=reason)
    if reason and len(reason) <= _LONGEST_WORD and len(reason.split()) == 1:
        return Result(Outcome.DEAD, reason=reason)
    return Result(Outcome.DEAD, reason="rejected", detail=reason)


def _payload_line(delivery: Delivery, _seq: int) -> bytes:
    payload = delivery.message.payload
    if b"\n" in payload:
        raise BadData(
            "a payload with a newline is not one line; the ndjson protocol carries it"
        )
    return payload + b"\n"


def _nonsense(why: str, line: bytes) -> Nonsense:
    shown = line[:_SHOWN].decode("utf-8", "replace")
    return Nonsense(f"{why}: {shown!r}{'...' if len(line) > _SHOWN else ''}")
