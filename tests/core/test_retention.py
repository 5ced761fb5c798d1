import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.core import ids
from mqctl.core.errors import BadUsage
from mqctl.core.keys import KeySpace
from mqctl.core.retention import (
    ABANDONED_MS,
    ORPHAN_MS,
    Cut,
    Progress,
    Retention,
    abandoned,
    cut,
    home_of,
    orphaned,
)

NOW = 1_800_000_000_000
PREFIX = KeySpace().payload_prefix

entry_ids = st.tuples(st.integers(0, 30), st.integers(0, 5))
partitions = st.sets(entry_ids, max_size=25).map(
    lambda found: [f"{ms}-{seq}" for ms, seq in sorted(found)]
)
some_ids = entry_ids.map(lambda pair: f"{pair[0]}-{pair[1]}")
readers = st.lists(
    st.builds(Progress, st.sampled_from("abc"), some_ids, st.none() | some_ids),
    max_size=3,
)
retentions = st.builds(
    Retention, keep=st.integers(0, 30), keep_for_ms=st.integers(0, 40)
)
times = st.integers(0, 50)


@given(partitions, readers, retentions, times)
def test_only_finished_entries_go(
    entries: list[str], groups: list[Progress], kept: Retention, now: int
) -> None:
    gone = entries[: cut(entries, groups, kept, now).remove]
    assert not gone or groups
    assert all(group.finished(entry) for group in groups for entry in gone)


@given(partitions, readers, retentions, times)
def test_only_what_retention_does_not_keep_goes(
    entries: list[str], groups: list[Progress], kept: Retention, now: int
) -> None:
    count = cut(entries, groups, kept, now).remove
    for index, entry in enumerate(entries[:count]):
        beyond = kept.keep and len(entries) - index > kept.keep
        old = kept.keep_for_ms and ids.parse(entry)[0] < now - kept.keep_for_ms
        assert beyond or old


@given(partitions, readers, retentions, times)
def test_whatever_stays_longer_has_a_group_that_needs_it(
    entries: list[str], groups: list[Progress], kept: Retention, now: int
) -> None:
    decided = cut(entries, groups, kept, now)
    stays = entries[decided.remove :]
    if decided.holding:
        needing = {g.group for g in groups if not g.finished(stays[0])}
        assert set(decided.holding) == needing
    elif groups:
        assert not kept.keep or len(stays) <= kept.keep
        assert all(ids.parse(e)[0] >= now - kept.keep_for_ms for e in stays) or (
            not kept.keep_for_ms
        )


@given(partitions, readers, retentions, times)
def test_the_decision_is_final_until_something_changes(
    entries: list[str], groups: list[Progress], kept: Retention, now: int
) -> None:
    first = cut(entries, groups, kept, now)
    assert cut(entries[first.remove :], groups, kept, now) == Cut(0, first.holding)


@given(some_ids, some_ids, st.none() | some_ids)
def test_finished_is_a_prefix(one: str, delivered: str, pending: str | None) -> None:
    group = Progress("g", delivered, pending)
    if group.finished(one) and one != "0-0":
        assert group.finished(ids.before(one))
    assert pending is None or not group.finished(pending)


def test_a_hole_and_the_last_delivered_entry_are_the_bounds() -> None:
    assert Progress("g", "5-1").finished("5-1")
    assert not Progress("g", "5-1").finished("5-2")
    assert Progress("g", "9-0", "5-1").finished("5-0")
    assert not Progress("g", "9-0", "5-1").finished("5-1")
    assert not Progress("g", "3-0", "5-1").finished("4-0")


def test_the_newest_stay_and_old_ones_go() -> None:
    entries = [f"{n}-0" for n in range(10, 20)]
    done = [Progress("g", "19-0")]
    assert cut(entries, done, Retention(keep=3), NOW).remove == 7
    assert cut(entries, done, Retention(keep=0), NOW).remove == 0
    assert cut(entries, done, Retention(keep=0, keep_for_ms=5), 20).remove == 5
    assert cut(entries, done, Retention(keep=8, keep_for_ms=5), 20).remove == 5
    assert cut(entries, done, Retention(keep=3, keep_for_ms=5), 20).remove == 7


@pytest.mark.parametrize("bad", [{"keep": -1}, {"keep_for_ms": -1}, {"interval_ms": 0}])
def test_a_retention_that_means_nothing_is_refused(bad: dict[str, int]) -> None:
    with pytest.raises(BadUsage):
        Retention(**bad)  # type: ignore[arg-type]


def test_a_group_is_abandoned_after_a_day() -> None:
    assert abandoned(NOW - ABANDONED_MS, NOW)
    assert not abandoned(NOW - ABANDONED_MS + 1, NOW)


def test_an_orphan_is_an_hour_older_than_the_oldest_entry() -> None:
    first = f"{NOW - 10}-0"
    for stored, orphan in ((NOW - 10 - ORPHAN_MS, False), (NOW - 11 - ORPHAN_MS, True)):
        assert orphan == orphaned(
            stored, now_ms=NOW, first_id=first, generated_id=f"{NOW}-0"
        )


def test_in_an_emptied_partition_an_hour_from_now_counts() -> None:
    for stored, orphan in ((NOW - ORPHAN_MS, False), (NOW - ORPHAN_MS - 1, True)):
        assert orphan == orphaned(stored, now_ms=NOW, first_id=None, generated_id="5-0")


def test_nothing_is_an_orphan_where_times_or_streams_are_in_doubt() -> None:
    ahead = f"{NOW + 1}-0"
    assert not orphaned(0, now_ms=NOW, first_id=ahead, generated_id=ahead)
    assert not orphaned(0, now_ms=NOW, first_id=None, generated_id="0-0")


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.integers(0, 2**31),
    st.uuids(),
)
def test_a_body_s_key_names_its_partition(topic: str, index: int, uuid: object) -> None:
    key = KeySpace().payload(topic, index, str(uuid))
    assert home_of(PREFIX, key) == (topic, index)


@pytest.mark.parametrize(
    "key",
    [
        *("", "x", PREFIX, f"{PREFIX}ts", f"{PREFIX}idx:orders", f"{PREFIX}orders:p:1"),
        *(f"{PREFIX}:p:1:u", f"{PREFIX}orders:p:x:u", f"{PREFIX}orders:p:-1:u"),
        *(f"{PREFIX}orders:p:1:", "other:payload:orders:p:1:u", f"{PREFIX}a:p:²:u"),
    ],
)
def test_other_keys_are_nobody_s_bodies(key: str) -> None:
    assert home_of(PREFIX, key) is None
