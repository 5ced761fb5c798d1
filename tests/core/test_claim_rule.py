import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.core.claim_rule import ClaimRule

IDLE = 300_000


def test_what_an_earlier_run_left_under_the_name_is_taken_at_once() -> None:
    rule = ClaimRule(IDLE)

    assert rule.threshold(own=True, first=True, deliveries=3) == 0
    assert rule.threshold(own=False, first=True, deliveries=3) == IDLE
    assert rule.threshold(own=True, first=False, deliveries=3) == IDLE


def test_in_place_a_new_owner_takes_everything_first() -> None:
    rule = ClaimRule(IDLE, "in-place")

    assert rule.threshold(own=False, first=True, deliveries=1) == 0
    assert rule.threshold(own=False, first=False, deliveries=1) == IDLE


def test_left_pending_each_attempt_has_its_own_backoff() -> None:
    rule = ClaimRule(IDLE, "pending", schedule=(100, 200))

    found = [rule.threshold(own=False, first=True, deliveries=n) for n in (1, 2, 3, 4)]

    assert found == [IDLE, 100, 200, 200]


@pytest.mark.parametrize("first", [True, False])
def test_off_never_takes_what_is_anothers(first: bool) -> None:
    for mode in ("requeue", "pending"):
        rule = ClaimRule(IDLE, mode, "off")  # type: ignore[arg-type]

        assert rule.threshold(own=False, first=first, deliveries=2) is None


@given(
    st.sampled_from(["requeue", "pending", "in-place"]),
    st.sampled_from(["on", "off", "only"]),
    st.booleans(),
    st.booleans(),
    st.integers(1, 10**6),
)
def test_every_entry_has_an_answer(
    mode: str, claim: str, own: bool, first: bool, deliveries: int
) -> None:
    rule = ClaimRule(IDLE, mode, claim)  # type: ignore[arg-type]

    found = rule.threshold(own=own, first=first, deliveries=deliveries)

    assert found is None or 0 <= found <= IDLE
