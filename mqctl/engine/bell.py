"""Waiting for new entries without taking them: a blocked XREAD that only rings.

A group read that blocks can be handed entries at the very moment it is abandoned.
So nothing here ever blocks in XREADGROUP: the bell waits on connections of its own
and may be dropped at any time. One connection, or on a cluster one for each stream
that lies in a slot of its own.
"""

from collections.abc import Collection

from mqctl.engine.session import Session
from mqctl.store.wire import ServerError, Wire, pack

_SHORTEST_MS = 100  # asking more often would only keep the server busy


class Bell:
    """Rings when one of the watched streams has an entry above the given id.

    `block_ms` bounds how long the server keeps waiting.
    """

    def __init__(self, session: Session, block_ms: int) -> None:
        self._session = session
        self._block_ms = max(_SHORTEST_MS, block_ms)
        self._waiting: dict[Wire, dict[str, str]] = {}
        self._spare: list[Wire] = []

    def filenos(self) -> list[int]:
        """Return what to select on; empty while nothing is watched."""
        return [wire.fileno() for wire in self._waiting]

    def arm(self, watched: dict[str, str]) -> None:
        """Watch streams (key -> id to wait above); no-op while watching the same.

        Blocks nobody.
        """
        groups = [watched] if self._session.atomic(watched) else _each(watched)
        groups = [group for group in groups if group]
        for wire, group in list(self._waiting.items()):
            if group in groups:
                groups.remove(group)
            else:
                del self._waiting[wire]
                wire.close()
        for group in groups:
            wire = self._spare.pop() if self._spare else self._session.another_wire()
            command = ("XREAD", "COUNT", 1, "BLOCK", self._block_ms, "STREAMS")
            wire.send(pack((*command, *group, *group.values())), 1)
            self._waiting[wire] = group

    def heard(self, ready: Collection[int]) -> set[str]:
        """Take the answers of descriptors that are readable: streams with entries."""
        found: set[str] = set()
        for wire in [w for w in self._waiting if w.fileno() in ready]:
            del self._waiting[wire]
            reply = wire.receive()
            if isinstance(reply, ServerError):
                wire.close()
                continue
            self._spare.append(wire)
            found.update(s.decode("utf-8", "surrogateescape") for s, _ in reply or ())
        return found

    def drop(self) -> None:
        """Stop watching; the connections go, nothing was taken."""
        for wire in (*self._waiting, *self._spare):
            wire.close()
        self._waiting.clear()
        self._spare.clear()


def _each(watched: dict[str, str]) -> list[dict[str, str]]:
    return [{stream: last_id} for stream, last_id in watched.items()]
