"""Scripts by themselves: where keys are free, and where undeclared ones are refused."""

from dataclasses import dataclass
from typing import Any

import pytest

from mqctl.core.keys import KeySpace
from mqctl.store import scripts
from tests.support.server import Server

TOPIC = "{orders}"
KEYS = KeySpace()


@dataclass(frozen=True)
class Scripts:
    """Runs scripts on an empty server."""

    server: Server
    head: str = ""

    def run(self, name: str, keys: list[str], *args: Any) -> Any:
        source = self.head + scripts.source(name)
        return self.server.call("EVAL", source, len(keys), *keys, *args)

    def call(self, *args: Any) -> Any:
        return self.server.call(*args)

    def hash(self, key: str) -> dict[bytes, bytes]:
        flat = self.call("HGETALL", key)
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def now_ms(self) -> int:
        seconds, micros = self.call("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    def deliver(self, stream: str, count: int, consumer: str = "me") -> list[str]:
        """Store entries and hand them to a consumer of group g."""
        ids = [self.call("XADD", stream, "*", "n", n).decode() for n in range(count)]
        self.group(stream)
        self.call(
            *("XREADGROUP", "GROUP", "g", consumer, "COUNT", count),
            *("STREAMS", stream, ">"),
        )
        return ids

    def group(self, stream: str) -> None:
        self.call("XGROUP", "CREATE", stream, "g", "0", "MKSTREAM")

    def pending(self, stream: str) -> list[str]:
        return [r[0].decode() for r in self.call("XPENDING", stream, "g", "-", "+", 99)]


@pytest.fixture(params=["standalone", "cluster"])
def lua(request: pytest.FixtureRequest) -> Scripts:
    """Every key at hand, or `#!lua`: undeclared keys and other slots are errors."""
    if request.param == "standalone":
        return Scripts(request.getfixturevalue("redis"))
    return Scripts(request.getfixturevalue("cluster_redis"), "#!lua\n")
