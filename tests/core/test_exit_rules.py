import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.core.errors import BadUsage
from mqctl.core.exit_rules import Rule, Verdict, parse_map, verdict

statuses = st.integers(0, 255)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (0, Verdict.SUCCESS),
        (1, Verdict.RETRY),
        (65, Verdict.DEAD),
        (75, Verdict.RETRY),
        (99, Verdict.STOP),
        (100, Verdict.DEAD),
        (111, Verdict.RETRY),
        (125, Verdict.RETRY),
        (126, Verdict.BROKEN),
        (127, Verdict.BROKEN),
        (128, Verdict.RETRY),
        (255, Verdict.RETRY),
    ],
)
def test_each_status_has_its_documented_meaning(status: int, expected: Verdict) -> None:
    assert verdict(status, None).verdict is expected


def test_a_death_by_signal_is_a_retry_even_when_every_status_is_mapped() -> None:
    assert verdict(None, 9, parse_map("0-255=dead")).verdict is Verdict.RETRY


def test_rules_are_read_in_order_with_ranges_and_delays() -> None:
    assert parse_map("3=dead, 10-19=retry:1m30s,20=retry:0,4=stop,5=success") == (
        Rule(3, 3, Verdict.DEAD),
        Rule(10, 19, Verdict.RETRY, 90_000),
        Rule(20, 20, Verdict.RETRY, 0),
        Rule(4, 4, Verdict.STOP),
        Rule(5, 5, Verdict.SUCCESS),
    )


def test_mapped_rules_come_before_the_defaults_also_for_127() -> None:
    rules = parse_map("127=retry:5s,0=dead")
    assert verdict(127, None, rules) == Rule(127, 127, Verdict.RETRY, 5000)
    assert verdict(0, None, rules).verdict is Verdict.DEAD
    assert verdict(126, None, rules).verdict is Verdict.BROKEN


def test_the_first_of_two_overlapping_rules_wins() -> None:
    rules = parse_map("3=dead,0-9=success")
    assert verdict(3, None, rules).verdict is Verdict.DEAD
    assert verdict(4, None, rules).verdict is Verdict.SUCCESS


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "''"),
        ("3=dead,", "''"),
        ("3", "'3'"),
        ("x=dead", "'x=dead'"),
        ("-1=dead", "'-1=dead'"),
        ("256=dead", "'256=dead'"),
        ("9-3=dead", "'9-3=dead'"),
        ("1-999=dead", "'1-999=dead'"),
        ("1=dead,3=broken", "'3=broken'"),
        ("3=DEAD", "'3=DEAD'"),
        ("3=dead:5s", "'3=dead:5s'"),
        ("3=retry:", "'3=retry:'"),
        ("3=retry:soon", "'3=retry:soon'"),
        ("٣=dead", "'٣=dead'"),
    ],
)
def test_a_rule_that_cannot_be_read_is_named(text: str, part: str) -> None:
    with pytest.raises(BadUsage) as caught:
        parse_map(text)
    assert part in caught.value.message


@given(statuses, statuses, st.sampled_from(["success", "retry", "dead", "stop"]))
def test_a_range_covers_exactly_what_lies_between_its_ends(
    a: int, b: int, word: str
) -> None:
    low, high = sorted((a, b))
    rules = parse_map(f"{low}-{high}={word}")
    for status in range(256):
        expected = rules[0] if low <= status <= high else verdict(status, None)
        assert verdict(status, None, rules) == expected


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_with_bad_usage(text: str) -> None:
    try:
        rules = parse_map(text)
    except BadUsage:
        return
    assert all(0 <= r.low <= r.high <= 255 for r in rules)
