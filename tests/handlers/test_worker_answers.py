import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.codecs.envelope import encode_delivery
from mqctl.core.errors import BadData
from mqctl.core.handler import SUCCESS, Outcome, Result
from mqctl.core.message import Delivery
from mqctl.core.units import short_duration
from mqctl.handlers.worker_answers import Nonsense, language, read_json, read_words

Deliver = Callable[..., Delivery]


def answer(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def test_success_needs_no_more_than_seq_and_result() -> None:
    assert read_json(b'{"seq":17,"result":"success"}') == (17, SUCCESS)


def test_null_and_unknown_fields_are_ignored() -> None:
    line = answer(seq=1, result="success", delay_ms=None, reason=None, took_ms=3.5)
    assert read_json(line) == (1, SUCCESS)


def test_a_retry_has_a_delay_and_a_detail() -> None:
    line = answer(seq=1, result="retry", delay_ms=0, reason="503 from upstream")
    assert read_json(line) == (
        1,
        Result(Outcome.RETRY, delay_ms=0, detail="503 from upstream"),
    )


def test_one_word_is_the_reason_of_a_dead_letter_and_more_is_its_detail() -> None:
    _, word = read_json(answer(seq=1, result="dead", reason="no-such-order"))
    _, text = read_json(answer(seq=1, result="dead", reason="no such order"))
    _, none = read_json(answer(seq=1, result="dead"))
    assert (word.reason, word.detail) == ("no-such-order", "")
    assert (text.reason, text.detail) == ("rejected", "no such order")
    assert (none.reason, none.detail) == ("rejected", "")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", "not JSON"),
        (b"Loading model...", "not JSON: 'Loading model...'"),
        (b"\xff", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"17", "not a JSON object"),
        (answer(result="success"), "no seq"),
        (answer(seq=True, result="success"), "no seq"),
        (answer(seq="1", result="success"), "no seq"),
        (answer(seq=1), "result is none of"),
        (answer(seq=1, result="SUCCESS"), "result is none of"),
        (answer(seq=1, result=["retry"]), "result is none of"),
        (answer(seq=1, result="retry", delay_ms=-1), "delay_ms"),
        (answer(seq=1, result="retry", delay_ms=1.5), "delay_ms"),
        (answer(seq=1, result="retry", delay_ms=True), "delay_ms"),
        (answer(seq=1, result="retry", delay_ms=10**30), "delay_ms"),
        (answer(seq=1, result="dead", reason={"code": 1}), "reason"),
    ],
)
def test_what_is_no_answer_is_told_with_its_beginning(line: bytes, why: str) -> None:
    with pytest.raises(Nonsense, match=why):
        read_json(line)


def test_a_long_line_that_is_no_answer_is_shortened() -> None:
    with pytest.raises(Nonsense) as caught:
        read_json(b"x" * 5000)
    assert len(str(caught.value)) < 200


@given(st.binary())
def test_any_line_is_an_answer_or_nonsense_told_in_one_line(line: bytes) -> None:
    for read in (read_json, read_words):
        assert outcome_or_complaint(read, line) in (
            Outcome.SUCCESS,
            Outcome.RETRY,
            Outcome.DEAD,
            "one line",
        )


def outcome_or_complaint(
    read: Callable[[bytes], tuple[int | None, Result]], line: bytes
) -> Outcome | str:
    try:
        return read(line)[1].outcome
    except Nonsense as error:
        return "one line" if len(str(error).splitlines()) == 1 else str(error)


@pytest.mark.parametrize(
    ("line", "result"),
    [
        (b"ok", SUCCESS),
        (b"ok \r", SUCCESS),
        (b"retry", Result(Outcome.RETRY)),
        (b"retry 30s", Result(Outcome.RETRY, delay_ms=30_000)),
        (b"retry 0", Result(Outcome.RETRY, delay_ms=0)),
        (b"retry 1m30s  busy now", Result(Outcome.RETRY, 90_000, detail="busy now")),
        (b"retry 503 upstream", Result(Outcome.RETRY, detail="503 upstream")),
        (b"retry \xff", Result(Outcome.RETRY, detail="\ufffd")),
        (b"dead", Result(Outcome.DEAD, reason="rejected")),
        (b"dead invalid", Result(Outcome.DEAD, reason="invalid")),
        (b"dead 5m", Result(Outcome.DEAD, reason="5m")),
        (b"dead it is", Result(Outcome.DEAD, reason="rejected", detail="it is")),
    ],
)
def test_words_are_read_as_documented(line: bytes, result: Result) -> None:
    assert read_words(line) == (None, result)


@pytest.mark.parametrize("line", [b"", b"OK", b"okay", b"ok then", b"yes", b"retry:1s"])
def test_other_words_are_nonsense(line: bytes) -> None:
    with pytest.raises(Nonsense, match="none of ok, retry, dead"):
        read_words(line)


@given(st.integers(0, 10**9))
def test_a_delay_is_read_as_it_is_written(ms: int) -> None:
    _, result = read_words(f"retry {short_duration(ms)} why".encode())
    assert (result.delay_ms, result.detail) == (ms, "why")


def test_an_envelope_is_said_with_its_number(delivery: Deliver) -> None:
    said = language("ndjson", encode_delivery, 5).say(delivery(b"body"), 17)
    envelope = json.loads(said)
    assert (envelope["seq"], envelope["payload"]) == (17, "body")
    assert said.endswith(b"\n")
    assert said.count(b"\n") == 1


def test_a_payload_is_said_byte_for_byte_and_goes_in_lockstep(
    delivery: Deliver,
) -> None:
    lines = language("lines", None, 5)
    assert lines.say(delivery(b"\xff\0 \r"), 1) == b"\xff\0 \r\n"
    assert lines.window == 1


def test_a_payload_of_two_lines_cannot_be_said_as_one(delivery: Deliver) -> None:
    with pytest.raises(BadData, match="newline"):
        language("lines", None, 5).say(delivery(b"a\nb"), 1)


def test_envelopes_need_their_encoder() -> None:
    with pytest.raises(ValueError, match="encode"):
        language("ndjson", None, 5)
