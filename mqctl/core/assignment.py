"""Which partitions a consumer takes, keeps and hands on: one table, computed by all.

At each beat every member of a group makes the same two reads, the live members and
the holders of the leases, and computes the same table from them:

- The pool is every partition of the subscription that is free or held by a member of
  the same subscription. What others hold (Java consumers, members with a fixed
  selection or another subscription) is out of reach: never counted, never shed to.
- A member's share of the pool is floor(pool·weight/weights), the remainder going to
  the largest fractions; ties go to the lowest CRC32(subscription + consumer). A share
  ends at the member's bound, and the others divide what it leaves. Members of weight
  0 divide, equally, only what is left when all others are at their bounds.
- Free partitions, lowest first, and then what members hold beyond their shares form
  one line; what members lack forms another; the n-th of one goes to the n-th of the
  other. So newcomers that start together take different partitions, two members
  never shed to the same gap, and a step that is done leaves the other pairs alone,
  in whatever order the steps are done.

A bound stands in the member's presence because others cannot see it otherwise: they
would take what it leaves free, find it below its share, and shed that to it, for ever.

`members` should be those seen within a few beats, rather than within the lease's life:
a member that died is no one to shed to. One that is only late loses nothing, its
leases count as out of reach until it beats again.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from zlib import crc32

Slot = tuple[str, int]
"""One partition: topic and index."""

FIXED = "-"
"""The subscription of members that name their partitions and are in no share."""

_MEMBER = re.compile(
    rb"(\d{1,9})(?:/(\d{1,9}))?:([0-9a-f]{8}|-):(.+)", re.ASCII | re.DOTALL
)
_PATIENCE = 2  # rounds that a free partition is left to the member it was dealt to


@dataclass(frozen=True, slots=True)
class Member:
    """A live consumer of a group; `bound` is the most it takes, 0 = no bound."""

    consumer: str
    subscription: str
    weight: int
    bound: int = 0

    @staticmethod
    def parse(raw: bytes) -> "Member | None":
        """Read `WEIGHT[/BOUND]:SUBSCRIPTION:CONSUMER`, None for anything else."""
        found = _MEMBER.fullmatch(raw)
        if not found:
            return None
        weight, bound, subscription, consumer = found.groups()
        try:
            name = consumer.decode()
        except UnicodeDecodeError:
            return None
        return Member(name, subscription.decode(), int(weight), int(bound or 0))

    def format(self) -> bytes:
        """Return what `parse` reads."""
        bound = f"/{self.bound}" if self.bound else ""
        return f"{self.weight}{bound}:{self.subscription}:{self.consumer}".encode()


@dataclass(frozen=True, slots=True)
class Plan:
    """What one member does now.

    `take`: free partitions to acquire, in this order. `shed`: own ones to drain and
    then transfer, with the receiver. `keep`: own ones that stay. `share`: how many
    are due to this member.
    """

    take: tuple[Slot, ...]
    shed: tuple[tuple[Slot, str], ...]
    keep: tuple[Slot, ...]
    share: int


def subscription_id(topics: Iterable[str]) -> str:
    """Return 8 hex digits of the SHA-256 of the sorted topics, joined by NUL.

    A pattern is one "topic"; prefix its kind, so that it is no topic's name.
    """
    return sha256("\0".join(sorted(set(topics))).encode()).hexdigest()[:8]


def shares(members: Iterable[Member], pool: int) -> dict[str, int]:
    """Return how many of `pool` partitions each consumer is due, in order of rank.

    The members are those of one subscription. The shares add up to the pool unless
    all bounds together are lower.
    """
    team = _ranked(members)
    share = dict.fromkeys((m.consumer for m in team), 0)
    share |= _divide([m for m in team if m.weight], pool)
    left = pool - sum(share.values())
    return share | _divide([replace(m, weight=1) for m in team if not m.weight], left)


def count_free(
    holders: Mapping[Slot, str | None], before: Mapping[Slot, int]
) -> dict[Slot, int]:
    """Return the rounds each free partition has been free: 0 when first seen so."""
    return {
        slot: before.get(slot, -1) + 1
        for slot, holder in holders.items()
        if holder is None
    }


def plan(
    *,
    me: str,
    subscription: str,
    members: Sequence[Member],
    holders: Mapping[Slot, str | None],
    max_partitions: int,
    free_rounds: Mapping[Slot, int],
    busy: Collection[Slot] = frozenset(),
    leaving: Collection[Slot] = frozenset(),
) -> Plan:
    """Decide what `me` does at this beat.

    `holders` covers all partitions of the subscription, None = free. `max_partitions`
    is the bound `me` has published, 0 = none. `free_rounds` is kept by `count_free`:
    what nobody took for two rounds is taken by anybody, after three by weight 0 too.
    Of its own partitions a member sheds those already `leaving` first, so that a
    drain once begun stays chosen, then those not `busy`, then the highest index. A
    partition no longer in `shed` is not to be drained any more, and the receiver is
    the one that the newest plan names.

    A fixed selection takes whatever of it is free. A member that `members` does not
    list (its beat was lost) keeps what it has and does nothing.
    """
    mine = sorted(slot for slot, holder in holders.items() if holder == me)
    free = sorted((s for s, holder in holders.items() if holder is None), key=_lowest)
    room = max(0, max_partitions - len(mine)) if max_partitions else len(free)
    if subscription == FIXED:
        return Plan(tuple(free[:room]), (), tuple(mine), 0)
    team = _team(members, subscription)
    if me not in team:
        return Plan((), (), tuple(mine), 0)

    held = Counter(holder for holder in holders.values() if holder in team)
    share = shares(team.values(), len(free) + held.total())
    lacking = [name for name in share for _ in range(share[name] - held[name])]
    beyond = [name for name in share for _ in range(held[name] - share[name])]
    patience = _PATIENCE if team[me].weight else _PATIENCE + 1
    dealt = {s: name for s, name in zip(free, lacking, strict=False) if name == me}
    overdue = [s for s in free if s not in dealt and free_rounds.get(s, 0) >= patience]
    moves = zip(beyond, lacking[len(free) :], strict=False)
    order = sorted(mine, key=lambda s: (s not in leaving, s in busy, -s[1], s[0]))
    shed = dict(zip(order, [to for name, to in moves if name == me], strict=False))
    return Plan(
        take=(*dealt, *overdue)[:room],
        shed=tuple(shed.items()),
        keep=tuple(slot for slot in mine if slot not in shed),
        share=share[me],
    )


def handover(
    *,
    me: str,
    subscription: str,
    members: Sequence[Member],
    holders: Mapping[Slot, str | None],
    mine: Collection[Slot],
) -> dict[Slot, str | None]:
    """Decide who gets each of my leases when I stop; None = delete the lease.

    Shares are computed as if I were gone. Withdraw the presence before reading
    `members`: members that stop together must not hand over to one another.
    """
    team = _team((m for m in members if m.consumer != me), subscription)
    others = [holder for slot, holder in holders.items() if slot not in mine]
    held = Counter(holder for holder in others if holder in team)
    free = others.count(None)
    share = shares(team.values(), free + held.total() + len(mine))
    lacking = [name for name in share for _ in range(share[name] - held[name])]
    receivers = [*lacking[free:], *[None] * len(mine)]
    return dict(zip(sorted(mine, key=_lowest), receivers, strict=False))


def _lowest(slot: Slot) -> tuple[int, str]:
    """Order by index before topic: each member gets its part of every topic."""
    return slot[1], slot[0]


def _ranked(members: Iterable[Member]) -> list[Member]:
    """Sort by CRC32(subscription + consumer), the order that breaks all ties."""
    return sorted(
        members,
        key=lambda m: (
            crc32((m.subscription + m.consumer).encode()),
            m.consumer,
            m.weight,
            m.bound,
        ),
    )


def _team(members: Iterable[Member], subscription: str) -> dict[str, Member]:
    """Return the members that divide the pool, one per name, by rank.

    A name seen twice was restarted with another weight: all keep the same one.
    """
    if subscription == FIXED:
        return {}
    same = (m for m in members if m.subscription == subscription)
    return {m.consumer: m for m in _ranked(same)}


def _divide(team: Sequence[Member], pool: int) -> dict[str, int]:
    """Divide by largest remainder, again and again until no bound is exceeded."""
    bounded: dict[str, int] = {}
    while team:
        total = sum(m.weight for m in team)
        part = {m.consumer: pool * m.weight // total for m in team}
        by_fraction = sorted(team, key=lambda m: -(pool * m.weight % total))
        for m in by_fraction[: pool - sum(part.values())]:
            part[m.consumer] += 1
        over = {m.consumer: m.bound for m in team if 0 < m.bound < part[m.consumer]}
        if not over:
            return bounded | part
        bounded |= over
        pool -= sum(over.values())
        team = [m for m in team if m.consumer not in over]
    return bounded
