"""Waiting for new entries without taking them: a blocked XREAD that only rings.

A group read that blocks can be handed entries at the very moment it is abandoned.
So nothing here ever blocks in XREADGROUP: the bell waits on a connection of its own
and may be dropped at any time.
"""

from mqctl.core.errors import Unreachable
from mqctl.engine.session import Session
from mqctl.store.wire import ServerError, Wire, pack


class Bell:
    """Rings when one of the watched streams has an entry above the given id."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._wire: Wire | None = None
        self._watched: dict[str, str] | None = None

    def fileno(self) -> int | None:
        """Return what to select on while armed."""
        if self._wire is None or self._watched is None:
            return None
        return self._wire.fileno()

    def arm(self, watched: dict[str, str], block_ms: int) -> None:
        """Watch streams (key -> id to wait above); no-op while watching the same.

        Blocks nobody. `block_ms` bounds how long the server keeps waiting.
        """
        if self._watched == watched:
            return
        if self._watched is not None:
            self.drop()
        if not watched:
            return
        if self._wire is None:
            self._wire = self._session.another_wire()
        command = ("XREAD", "COUNT", 1, "BLOCK", max(1, block_ms), "STREAMS")
        self._wire.send(pack((*command, *watched, *watched.values())), 1)
        self._watched = watched

    def heard(self) -> None:
        """Take the answer once the descriptor is readable."""
        if self._wire is None or self._watched is None:
            return
        self._watched = None
        try:
            reply = self._wire.receive()
        except Unreachable:
            self._wire = None
            raise
        if isinstance(reply, ServerError):
            self.drop()

    def drop(self) -> None:
        """Stop watching; the connection goes, nothing was taken."""
        if self._wire is not None:
            self._wire.close()
        self._wire = None
        self._watched = None
