"""What everything in the engine receives: a wire, the keys, the clock, chance."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from mqctl.core.clock import SystemClock
from mqctl.core.keys import KeySpace, share_slot
from mqctl.store.connect import open_wire
from mqctl.store.url import Endpoint
from mqctl.store.wire import Wire


@dataclass(slots=True)
class Session:
    """One connection and what goes with it. `reopen` replaces a broken wire."""

    endpoint: Endpoint
    wire: Wire
    keys: KeySpace = field(default_factory=KeySpace)
    clock: SystemClock = field(default_factory=SystemClock)
    random: Random = field(default_factory=Random)
    started: Callable[[str], None] | None = None

    @classmethod
    def open(
        cls,
        endpoint: Endpoint,
        *,
        keys: KeySpace | None = None,
        started: Callable[[str], None] | None = None,
    ) -> "Session":
        """Connect. `started` is told when a local server had to be started."""
        clock = SystemClock()
        wire = open_wire(endpoint, clock, started=started)
        return cls(endpoint, wire, keys or KeySpace(), clock, started=started)

    def another_wire(self) -> Wire:
        """Return a second connection to the same server."""
        return open_wire(self.endpoint, self.clock, started=self.started)

    def reopen(self) -> None:
        """Replace the wire by a new one; what the old one owed stays unknown."""
        self.wire.close()
        self.wire = self.another_wire()

    def close(self) -> None:
        """Close the connection."""
        self.wire.close()

    def atomic(self, keys: Iterable[str]) -> bool:
        """Tell whether one script may touch all these keys on this server."""
        return not self.wire.cluster or share_slot(keys)

    def uuid(self) -> str:
        """Return a random UUID (version 4) as text."""
        bits = self.random.getrandbits(128)
        bits = bits & ~(0xF << 76) | (4 << 76)
        text = f"{bits & ~(3 << 62) | (2 << 62):032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
