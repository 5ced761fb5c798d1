"""Removing entries with their acknowledgement (`--ack-delete`): the step after it.

A crash between acknowledgement and removal leaves an entry, one between entry and body
leaves a body for the sweep; nothing that somebody still needs is ever missing.
"""

from collections.abc import Sequence
from typing import Literal

from mqctl.core.assignment import Slot
from mqctl.engine.session import Session
from mqctl.engine.trimmer import drop_bodies
from mqctl.store import scripts

Policy = Literal["none", "immediate", "all-groups-ack"]

ACKSET_TTL_MS = 86_400_000

_CHUNK = 100  # ids in one script: the server stands still that long


def delete_acked(
    session: Session,
    policy: Policy,
    slot: Slot,
    group: str,
    acked: Sequence[str],
    *,
    ackset_ttl_ms: int = ACKSET_TTL_MS,
) -> list[str]:
    """Remove entries that `group` has acknowledged; return the ids that are gone.

    `immediate`: all of them, for every group. `all-groups-ack`: those that every group
    of the stream has finished; for the others the group is noted in their ack sets,
    which live for `ackset_ttl_ms` more. A body stored aside goes after its entry; one
    that another group has in its hands is left to the sweep. May be repeated.
    """
    if policy == "none" or not acked:
        return []
    topic, index = slot
    stream = session.keys.partition(topic, index)
    counted = policy == "all-groups-ack"
    sets = {i: session.keys.acks(topic, index, i) for i in acked} if counted else {}
    together = session.atomic([stream, *sets.values()])
    chunks = [acked[i : i + _CHUNK] for i in range(0, len(acked), _CHUNK)]
    replies = session.wire.calls(
        [
            scripts.ack_delete(
                session.wire,
                [stream, *(sets[i] for i in ids if together and counted)],
                policy=policy,
                group=group,
                ackset_ttl_ms=ackset_ttl_ms,
                ids=ids,
            )
            for ids in chunks
        ]
    )
    gone = [raw.decode() for found, _ in replies for raw in found]
    drop_bodies(session, slot, [row for _, rows in replies for row in rows])
    if counted and not together:
        _note(session, sets, group, set(gone), ackset_ttl_ms)
    return gone


def _note(
    session: Session, sets: dict[str, str], group: str, gone: set[str], ttl_ms: int
) -> None:
    """Keep the ack sets where no script may: for members that count by them."""
    left = [key for entry_id, key in sets.items() if entry_id not in gone]
    session.wire.calls(
        [
            *(("DEL", sets[entry_id]) for entry_id in gone),
            *(("SADD", key, group) for key in left),
            *(("PEXPIRE", key, ttl_ms) for key in left),
        ]
    )
