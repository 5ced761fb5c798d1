"""Making and removing groups."""

from dataclasses import dataclass

from mqctl.codecs import native
from mqctl.core import ids
from mqctl.core.assignment import Member, subscription_id
from mqctl.core.errors import Active, NameInUse
from mqctl.core.names import check_new_group
from mqctl.core.positions import Position
from mqctl.engine import admin, admin_groups, admin_retries
from mqctl.engine.session import Session
from mqctl.store.wire import Command, ServerError


@dataclass(frozen=True, slots=True)
class GroupCreation:
    """`created` is the number of partitions on which the group was made."""

    action: str
    topic: str
    dry_run: bool
    group: str
    partitions: int
    created: int


@dataclass(frozen=True, slots=True)
class GroupDeletion:
    """What goes with a group: its position, what it has pending.

    `retries` wait for this group alone and will be handled by nobody; `deleted` is
    the number of partitions it was removed from.
    """

    action: str
    topic: str
    dry_run: bool
    group: str
    members: int
    pending: int
    lag: int | None
    retries: int
    deleted: int


def create_group(
    session: Session, topic: str, group: str, position: Position
) -> GroupCreation:
    """Make a group on every partition that lacks it; NameInUse when none does."""
    check_new_group(group)
    seen = admin_groups.looks(session, topic)
    starts = _starts(seen, position)
    replies = session.wire.batch(
        [
            ("XGROUP", "CREATE", key, group, start, "MKSTREAM")
            for key, start in zip(seen.streams, starts, strict=True)
        ]
    )
    created = 0
    for reply in replies:
        if isinstance(reply, ServerError) and reply.kind == "BUSYGROUP":
            continue
        admin.checked(reply, "creating the group")
        created += 1
    if not created:
        raise NameInUse(
            f"topic {topic} has a group {group}",
            hint=f"mqctl admin group-stats {topic} {group}",
            topic=topic,
            group=group,
        )
    return GroupCreation(
        action="create-group",
        topic=topic,
        dry_run=False,
        group=group,
        partitions=len(seen.streams),
        created=created,
    )


def _starts(seen: admin_groups.Looks, position: Position) -> list[str]:
    """Return the id behind which the group begins on each partition."""
    if position.last is None:
        return [position.after for _ in seen.streams]
    if not position.last:
        return ["$" for _ in seen.streams]
    replies = seen.session.wire.calls(
        [("XREVRANGE", k, "+", "-", "COUNT", position.last) for k in seen.streams]
    )
    newest = sorted(
        (
            (ids.parse(raw.decode()), index)
            for index, entries in enumerate(replies)
            for raw, _ in entries
        ),
        reverse=True,
    )[: position.last]
    starts = ["$" for _ in seen.streams]
    for (ms, seq), index in newest:
        starts[index] = ids.before(f"{ms}-{seq}")
    return starts


def delete_group(
    session: Session, topic: str, group: str, *, dry_run: bool
) -> GroupDeletion:
    """Remove a group from a topic, or only say what that means.

    Its commit fields and presence go first, so that a consumer that still runs does
    not take the group for lost and make it again. Safe to repeat.
    """
    seen = admin_groups.looks(session, topic)
    seen.require(group)
    members = seen.alive(group)
    present = [i for i, found in enumerate(seen.groups) if group in found]
    waiting = admin_retries.rows(session, topic)
    lag = admin.sum_or_none(backlog.lag for backlog in seen.backlogs(group))
    if not dry_run:
        _forget(seen, group)
        session.wire.calls(
            [("XGROUP", "DESTROY", seen.streams[i], group) for i in present]
            + [
                ("DEL", session.keys.lease(topic, group, i))
                for i in range(len(seen.streams))
            ]
        )
    return GroupDeletion(
        action="delete-group",
        topic=topic,
        dry_run=dry_run,
        group=group,
        members=len(members),
        pending=sum(seen.groups[i][group].pending for i in present),
        lag=lag,
        retries=sum(row.group == group for row in waiting),
        deleted=0 if dry_run else len(present),
    )


def refuse_running(plan: GroupDeletion) -> None:
    """Raise Active when the group has consumers that run."""
    if plan.members:
        raise Active(
            f"group {plan.group} has {plan.members} running consumers",
            hint="stop them, or --force",
            topic=plan.topic,
            group=plan.group,
        )


def _forget(seen: admin_groups.Looks, group: str) -> None:
    """Remove the group's commit and ack fields, and the presence of its members."""
    session, keys = seen.session, seen.session.keys
    every = range(len(seen.streams))
    hashes = [keys.commit(seen.topic, i) for i in every]
    removals: list[Command] = []
    for key, flat in zip(
        hashes, session.wire.calls([("HGETALL", k) for k in hashes]), strict=True
    ):
        for field, value in zip(flat[::2], flat[1::2], strict=True):
            entry = native.commit_entry(field, value)
            if entry and entry[0] == group:
                removals.append(("HDEL", key, field))
    removals += [("HDEL", keys.acked(seen.topic, i), group) for i in every]
    members = keys.members(group)
    for raw in session.wire.call("ZRANGE", members, 0, -1):
        member = Member.parse(raw)
        if member and member.subscription == subscription_id([seen.topic]):
            removals.append(("ZREM", members, raw))
    session.wire.calls(removals)
