import pytest

from mqctl.core.assignment import FIXED
from mqctl.core.errors import BadUsage
from mqctl.core.selection import Selection


def test_patterns_match_whole_names_and_exclusions_win() -> None:
    by_glob = Selection(glob="orders-*", exclude=".*-old")
    by_regex = Selection(regex="order")

    names = ["orders-eu", "orders-us", "orders-eu-old", "order", "my-orders-eu"]
    assert by_glob.found(names) == ["orders-eu", "orders-us"]
    assert by_regex.found(names) == ["order"]


def test_named_topics_are_names_not_patterns() -> None:
    selection = Selection(("a*", "b"), exclude="b")

    assert selection.named() == ["a*"]
    assert selection.found(["ab"]) == []


def test_partitions_and_shards_choose_indices() -> None:
    assert Selection(("t",)).slots("t", 3) == [("t", 0), ("t", 1), ("t", 2)]
    assert Selection(("t",), partitions=(0, 5)).slots("t", 3) == [("t", 0)]
    assert Selection(("t",), shard=(1, 2)).slots("t", 4) == [("t", 1), ("t", 3)]


def test_the_subscription_is_the_same_for_those_who_share() -> None:
    assert Selection(("a", "b")).subscription == Selection(("b", "a")).subscription
    assert Selection(("a",)).subscription != Selection(glob="a").subscription
    assert Selection(glob="a").subscription != Selection(regex="a").subscription
    assert Selection(("a",), shard=(0, 2)).subscription == FIXED
    assert Selection(("a",), partitions=(1,)).subscription == FIXED


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"regex": "("},
        {"topics": ("t",), "exclude": "["},
        {"topics": ("t",), "shard": (2, 2)},
        {"topics": ("t",), "shard": (0, 0)},
        {"topics": ("t",), "shard": (0, 2), "partitions": (1,)},
    ],
)
def test_what_cannot_be_meant_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadUsage):
        Selection(**wrong)  # type: ignore[arg-type]
