"""The script against its specification in core/retention.py, and what else it says."""

from typing import Any

import hiredis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqctl.core.retention import Cut, Progress, Retention, cut
from tests.scripts.conftest import KEYS, TOPIC, Scripts
from tests.support.server import Server

STREAM = KEYS.partition(TOPIC, 0)
MOST = 2**64 - 1
HOUR = 3_600_000
ASIDE = ["payload", "", "headers", '{"x-payload-hash-ref":"r"}']


def trim(
    lua: Scripts, keep: int, *, age: int = 0, page: int = 200, bodies_from: str = ""
) -> Any:
    return lua.run("trim_finished", [STREAM], keep, age, page, bodies_from)


def ids(lua: Scripts) -> list[str]:
    return [entry.decode() for entry, _ in lua.call("XRANGE", STREAM, "-", "+")]


def add(lua: Scripts, *entries: str) -> None:
    for entry in entries:
        lua.call("XADD", STREAM, entry, "n", 1)


def group(lua: Scripts, name: str, upto: str = "0") -> None:
    lua.call("XGROUP", "CREATE", STREAM, name, upto, "MKSTREAM")


def read(lua: Scripts, name: str, count: int) -> None:
    lua.call(
        *("XREADGROUP", "GROUP", name, "me", "COUNT", count, "STREAMS", STREAM, ">")
    )


def test_the_oldest_finished_entries_go(lua: Scripts) -> None:
    add(lua, *(f"1-{n}" for n in range(1, 11)))
    group(lua, "g", "$")
    assert trim(lua, 4) == [6, 0, 4, b"", [], []]
    assert ids(lua) == ["1-7", "1-8", "1-9", "1-10"]
    assert trim(lua, 4) == [0, 0, 4, b"", [], []]


def test_the_slowest_group_decides_and_is_named(lua: Scripts) -> None:
    add(lua, *(f"1-{n}" for n in range(1, 11)))
    group(lua, "fast", "$")
    group(lua, "slow", "1-3")
    assert trim(lua, 4) == [3, 0, 7, b"", [b"slow"], []]
    assert ids(lua)[0] == "1-4"


def test_a_pending_hole_holds_back_what_lies_behind_it(lua: Scripts) -> None:
    add(lua, *(f"1-{n}" for n in range(1, 7)))
    group(lua, "g")
    read(lua, "g", 6)
    lua.call("XACK", STREAM, "g", *(f"1-{n}" for n in (1, 2, 4, 5, 6)))
    assert trim(lua, 1) == [2, 0, 4, b"", [b"g"], []]
    assert ids(lua)[0] == "1-3"
    lua.call("XACK", STREAM, "g", "1-3")
    assert trim(lua, 1)[0] == 3


def test_without_a_group_nothing_goes(lua: Scripts) -> None:
    add(lua, "1-1", "1-2", "1-3")
    assert trim(lua, 1, age=1) == [0, 0, 3, b"", [], []]
    group(lua, "g", "$")
    lua.call("XGROUP", "DESTROY", STREAM, "g")
    assert trim(lua, 1, age=1) == [0, 0, 3, b"", [], []]


def test_a_group_that_has_not_read_yet_holds_everything(lua: Scripts) -> None:
    add(lua, "1-1", "1-2", "1-3")
    group(lua, "done", "$")
    group(lua, "new")
    assert trim(lua, 1, age=1) == [0, 0, 3, b"", [b"new"], []]


def test_what_a_group_is_to_read_again_stays(lua: Scripts) -> None:
    """Reset to the start with an entry pending far above: all below is unread."""
    add(lua, *(f"1-{n}" for n in range(1, 6)))
    group(lua, "g")
    read(lua, "g", 5)
    lua.call("XACK", STREAM, "g", *(f"1-{n}" for n in range(1, 5)))
    lua.call("XGROUP", "SETID", STREAM, "g", "1-2")
    assert trim(lua, 1) == [2, 0, 3, b"", [b"g"], []]
    assert ids(lua) == ["1-3", "1-4", "1-5"]


def test_an_absent_and_an_empty_stream_have_nothing_to_trim(lua: Scripts) -> None:
    assert trim(lua, 1, age=1, bodies_from="-") == [0, 0, 0, b"-", [], []]
    group(lua, "g")
    assert trim(lua, 1, age=1, bodies_from="-") == [0, 0, 0, b"-", [], []]
    assert lua.call("XLEN", STREAM) == 0


def test_pages_go_on_until_everything_is_done(lua: Scripts) -> None:
    add(lua, *(f"1-{n}" for n in range(1, 101)))
    group(lua, "g", "$")
    replies = [trim(lua, 10, page=30)[:3] for _ in range(4)]
    assert replies == [[30, 1, 70], [30, 1, 40], [30, 0, 10], [0, 0, 10]]


def test_a_page_of_large_entries_is_shorter(lua: Scripts) -> None:
    for _ in range(40):
        lua.call("XADD", STREAM, "*", "payload", b"x" * 65_536)
    group(lua, "g", "$")
    removed, again, *_ = trim(lua, 1)
    assert 10 < removed < 25
    assert again == 1
    while trim(lua, 1)[1]:
        pass
    assert lua.call("XLEN", STREAM) == 1


def test_age_removes_finished_entries_down_to_none(lua: Scripts) -> None:
    now = lua.now_ms()
    add(lua, "5-1", f"{now - 2 * HOUR}-0", f"{now - HOUR // 2}-0")
    group(lua, "g", "$")
    assert trim(lua, 0, age=HOUR)[:3] == [2, 0, 1]
    assert trim(lua, 0, age=HOUR // 4)[:3] == [1, 0, 0]
    assert lua.call("XINFO", "GROUPS", STREAM)


def test_an_age_beyond_the_epoch_keeps_everything(lua: Scripts) -> None:
    add(lua, "1-1")
    group(lua, "g", "$")
    assert trim(lua, 0, age=2**52)[:3] == [0, 0, 1]


def test_keeping_everything_removes_nothing(lua: Scripts) -> None:
    add(lua, "1-1", "1-2")
    group(lua, "g", "$")
    assert trim(lua, 0) == [0, 0, 2, b"", [], []]


def test_trimming_leaves_the_lag_of_groups_known(lua: Scripts) -> None:
    add(lua, *(f"1-{n}" for n in range(1, 11)))
    group(lua, "g")
    read(lua, "g", 6)
    lua.call("XACK", STREAM, "g", *(f"1-{n}" for n in range(1, 7)))
    trim(lua, 2)
    group(lua, "new")
    rows = lua.call("XINFO", "GROUPS", STREAM)
    lags = {row[1]: dict(zip(row[::2], row[1::2], strict=True))[b"lag"] for row in rows}
    assert lags == {b"g": 4, b"new": 4}


def test_removed_entries_that_refer_to_bodies_are_told(lua: Scripts) -> None:
    add(lua, "1-1")
    lua.call("XADD", STREAM, "1-2", *ASIDE)
    name, kryo = b"\x03header\xf3", b"\x03x-payload-hash-re" + bytes([ord("f") | 0x80])
    lua.call("XADD", STREAM, "1-3", name, kryo)
    add(lua, "1-4")
    group(lua, "g", "$")
    *_, rows = trim(lua, 1)
    fields = [field.encode() for field in ASIDE]
    assert rows == [[b"1-2", fields], [b"1-3", [name, kryo]]]


def test_finished_bodies_go_from_within_what_is_kept(lua: Scripts) -> None:
    for n in range(1, 9):
        lua.call("XADD", STREAM, f"1-{n}", *(ASIDE if n % 2 else ["n", "1"]))
    group(lua, "fast", "$")
    group(lua, "slow", "1-4")
    removed, again, left, place, holding, rows = trim(lua, 100, bodies_from="-")
    assert [removed, again, left, place, holding] == [0, 0, 6, b"(1-4", []]
    assert [entry for entry, _ in rows] == [b"1-1", b"1-3"]
    assert ids(lua) == ["1-2", "1-4", "1-5", "1-6", "1-7", "1-8"]
    lua.call("XGROUP", "SETID", STREAM, "slow", "1-8")
    *_, place, _, rows = trim(lua, 100, bodies_from="(1-4")
    assert [entry for entry, _ in rows] == [b"1-5", b"1-7"]
    assert place == b"(1-8"


def test_bodies_are_looked_for_in_pages(lua: Scripts) -> None:
    for n in range(1, 91):
        lua.call("XADD", STREAM, f"1-{n}", *ASIDE)
    group(lua, "g", "$")
    place, left = "-", []
    while True:
        _, again, count, raw, _, rows = trim(lua, 100, page=40, bodies_from=place)
        place = raw.decode()
        left.append((count, len(rows)))
        if not again:
            break
    assert left == [(50, 40), (10, 40), (0, 10)]


def test_the_largest_id_is_compared_and_trimmed_like_others(lua: Scripts) -> None:
    top = f"{MOST}-{MOST - 1}"
    add(lua, f"{2**53}-1", f"{2**53 + 1}-{2**53}", f"{2**53 + 1}-{2**53 + 1}", top)
    group(lua, "g", f"{2**53 + 1}-{2**53}")
    assert trim(lua, 1) == [2, 0, 2, b"", [b"g"], []]
    lua.call("XGROUP", "SETID", STREAM, "g", top)
    assert trim(lua, 1)[:3] == [1, 0, 1]
    assert ids(lua) == [top]


def test_what_is_no_stream_is_refused(lua: Scripts) -> None:
    lua.call("SET", STREAM, "no stream")
    with pytest.raises(hiredis.ReplyError, match="WRONGTYPE"):
        trim(lua, 1)


numbers = st.integers(1, 12)
entries = st.sets(
    st.tuples(st.sampled_from([1, 9, 10, 2**53 + 1]), numbers), min_size=1, max_size=20
).map(sorted)


@st.composite
def _partitions(draw: st.DrawFn) -> tuple[list[str], dict[str, tuple[str, set[str]]]]:
    """Ids, and for each group the last delivered id and what is pending."""
    found = [f"{ms}-{seq}" for ms, seq in draw(entries)]
    some = st.sampled_from(["0-0", *found])
    groups = draw(
        st.dictionaries(
            st.sampled_from("abc"),
            st.tuples(some, st.sets(st.sampled_from(found), max_size=2)),
        )
    )
    return found, groups


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    partition=_partitions(),
    keep=st.integers(0, 12),
    aged=st.booleans(),
    page=st.integers(1, 7),
)
def test_the_script_does_what_the_specification_says(
    server: Server,
    partition: tuple[list[str], dict[str, tuple[str, set[str]]]],
    keep: int,
    aged: bool,
    page: int,
) -> None:
    lua = Scripts(server)
    lua.call("DEL", STREAM)
    found, groups = partition
    add(lua, *found)
    for name, (delivered, pending) in groups.items():
        group(lua, name, delivered)
        for entry in pending:
            lua.call("XCLAIM", STREAM, name, "me", 0, entry, "FORCE", "JUSTID")
    kept = Retention(keep=keep, keep_for_ms=HOUR if aged else 0)
    readers = [
        Progress(n, delivered, min(pending, key=_order, default=None))
        for n, (delivered, pending) in groups.items()
    ]
    right = cut(found, readers, kept, lua.now_ms())
    removed, holding, again = 0, [], 1
    while again:
        count, again, _, _, holding, _ = trim(
            lua, keep, age=kept.keep_for_ms, page=page
        )
        removed += count
    assert Cut(removed, tuple(sorted(g.decode() for g in holding))) == Cut(
        right.remove, tuple(sorted(right.holding))
    )
    assert ids(lua) == found[removed:]


def _order(entry: str) -> tuple[int, ...]:
    return tuple(map(int, entry.split("-")))
