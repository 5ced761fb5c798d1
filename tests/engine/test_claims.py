"""Taking over what others left, giving back what was not started."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from mqctl.core.claim_rule import ClaimRule
from mqctl.engine.claims import Claimed, Page, give_back, take_page
from mqctl.engine.session import Session
from mqctl.store.url import parse_url
from tests.support.server import Server

STREAM, GROUP = "stream:topic:orders:p:0", "g"
OLD = 60_000


@dataclass
class Pile:
    """A group of one stream, and entries pending in it."""

    server: Server
    session: Session

    def __post_init__(self) -> None:
        self.server.call("XGROUP", "CREATE", STREAM, GROUP, "0", "MKSTREAM")

    def pend(
        self, count: int, owner: str, idle_ms: int = 0, times: int = 1
    ) -> list[str]:
        """Make entries pending under a name, with that idle time and count."""
        call = self.server.call
        ids = [call("XADD", STREAM, "*", "n", n) for n in range(count)]
        call("XREADGROUP", "GROUP", GROUP, owner, "STREAMS", STREAM, ">")
        call(
            *("XCLAIM", STREAM, GROUP, owner, 0, *ids),
            *("IDLE", idle_ms, "RETRYCOUNT", times, "JUSTID"),
        )
        return [i.decode() for i in ids]

    def take(self, **changed: Any) -> Page:
        given: dict[str, Any] = {
            "cursor": "-",
            "count": 50,
            "rule": ClaimRule(OLD),
            "first": False,
            "in_hand": (),
        }
        return take_page(self.session, STREAM, GROUP, "me", **(given | changed))

    def rows(self) -> dict[str, tuple[str, int]]:
        """Return owner and delivery count of each pending entry."""
        rows = self.server.call("XPENDING", STREAM, GROUP, "-", "+", 10_000)
        return {i.decode(): (owner.decode(), count) for i, owner, _, count in rows}


@pytest.fixture
def pile(redis: Server) -> Iterator[Pile]:
    session = Session.open(parse_url(redis.url, tls=None))
    yield Pile(redis, session)
    session.close()


def ids(page: Page) -> list[str]:
    return [claimed.id for claimed in page.claimed]


def test_what_is_idle_is_taken_in_order_and_not_counted(pile: Pile) -> None:
    left = pile.pend(3, "gone", OLD * 2, times=4)
    page = pile.take()
    assert page.claimed == [
        Claimed(entry, 4, [b"n", b"%d" % n]) for n, entry in enumerate(left)
    ]
    assert page.cursor is None
    assert pile.rows() == dict.fromkeys(left, ("me", 4))


def test_what_is_in_work_elsewhere_stays_there_and_says_when_it_ripens(
    pile: Pile,
) -> None:
    pile.pend(2, "alive", OLD - 20_000)
    pile.pend(1, "alive", OLD - 30_000)
    page = pile.take()
    assert page.claimed == []
    assert page.ripens_ms is not None
    assert 19_000 < page.ripens_ms <= 20_000
    assert {owner for owner, _ in pile.rows().values()} == {"alive"}


def test_own_entries_are_taken_only_when_asked_for_and_whatever_their_age(
    pile: Pile,
) -> None:
    left = pile.pend(2, "me", 0, times=2)
    assert ids(pile.take()) == []
    assert ids(pile.take(first=True)) == left
    assert pile.rows() == dict.fromkeys(left, ("me", 2))


def test_what_is_in_hand_is_passed_over(pile: Pile) -> None:
    mine = pile.pend(2, "me", OLD * 2)
    page = pile.take(first=True, in_hand={mine[0]})
    assert ids(page) == mine[1:]
    assert page.ripens_ms is None


def test_own_and_foreign_entries_come_in_id_order(pile: Pile) -> None:
    order = [
        pile.pend(1, owner, OLD * 2)[0] for owner in ("gone", "me", "gone", "me", "x")
    ]
    assert ids(pile.take(first=True)) == order


def test_pages_follow_one_another_to_the_end(pile: Pile) -> None:
    left = pile.pend(7, "gone", OLD * 2)
    found: list[str] = []
    cursor: str | None = "-"
    pages = 0
    while cursor is not None:
        page = pile.take(cursor=cursor, count=3)
        found += ids(page)
        cursor, pages = page.cursor, pages + 1
    assert found == left
    assert pages == 3


def test_an_entry_without_a_body_is_acknowledged_and_told(pile: Pile) -> None:
    left = pile.pend(3, "gone", OLD * 2)
    pile.server.call("XDEL", STREAM, left[1])
    page = pile.take()
    assert ids(page) == [left[0], left[2]]
    assert page.trimmed == [left[1]]
    assert list(pile.rows()) == [left[0], left[2]]
    assert pile.take(first=True).trimmed == []


def test_nothing_pending_is_an_empty_page(pile: Pile) -> None:
    assert pile.take(first=True) == Page([], None, [], None)


def test_two_hundred_entries_fall_to_eight_claimants_once_each(pile: Pile) -> None:
    left = pile.pend(200, "gone", OLD * 2)
    found: list[list[str]] = []
    gate = threading.Barrier(8)

    def claim(name: str) -> None:
        session = Session.open(parse_url(pile.server.url, tls=None))
        gate.wait(10)
        page = take_page(
            *(session, STREAM, GROUP, name),
            cursor="-",
            count=200,
            rule=ClaimRule(OLD),
            first=True,
            in_hand=(),
        )
        found.append(ids(page))
        session.close()

    threads = [threading.Thread(target=claim, args=(f"c{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(entry for taken in found for entry in taken) == sorted(left)


def test_what_is_given_back_is_claimable_at_once_with_its_count(pile: Pile) -> None:
    first, second = pile.pend(1, "me", times=1), pile.pend(2, "me", times=3)
    entries = [(i, 1) for i in first] + [(i, 3) for i in second]
    give_back(pile.session, STREAM, GROUP, "me", entries)
    page = take_page(
        *(pile.session, STREAM, GROUP, "next"),
        cursor="-",
        count=50,
        rule=ClaimRule(300_000),
        first=False,
        in_hand=(),
    )
    assert [(c.id, c.deliveries) for c in page.claimed] == entries


def test_what_was_settled_meanwhile_does_not_come_back(pile: Pile) -> None:
    (entry,) = pile.pend(1, "me")
    pile.server.call("XACK", STREAM, GROUP, entry)
    give_back(pile.session, STREAM, GROUP, "me", [(entry, 1)])
    assert pile.rows() == {}


def test_giving_back_nothing_asks_nothing(pile: Pile) -> None:
    calls = int(pile.server.info()["total_commands_processed"])
    give_back(pile.session, STREAM, GROUP, "me", [])
    assert int(pile.server.info()["total_commands_processed"]) == calls + 1
