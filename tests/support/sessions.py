"""Sessions, and consumers that run in a thread of the test's own process."""

from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from typing import Any

from mqctl.core.handler import SUCCESS, Handler, Result
from mqctl.core.message import Delivery
from mqctl.core.options import ConsumerOptions
from mqctl.engine.consumer import Consumer
from mqctl.engine.session import Session
from mqctl.store.url import parse_url
from tests.support.server import Server

QUICK = {
    "lease_ttl_ms": 1000,
    "renew_ms": 300,
    "rebalance_ms": 500,
    "claim_idle_ms": 1000,
    "claim_interval_ms": 500,
}
"""Timings under which leases run out and entries become claimable in a second."""


@contextmanager
def session(server: Server) -> Iterator[Session]:
    opened = Session.open(parse_url(server.url, tls=None))
    try:
        yield opened
    finally:
        opened.close()


def topic(server: Server, name: str = "t", partitions: int = 1) -> None:
    """Create a topic without messages."""
    server.call("SADD", "streaming:mq:topics:registry", name)
    server.call("HSET", f"streaming:mq:topic:{name}:meta", "partitionCount", partitions)


def add(server: Server, payload: str, partition: int = 0, name: str = "t") -> str:
    """Append a message and return its id."""
    stream = f"stream:topic:{name}:p:{partition}"
    entry_id: bytes = server.call("XADD", stream, "*", "payload", payload)
    return entry_id.decode()


class Given:
    """A handler that answers what it is given, when it is given it.

    `started` gets each delivery; every call waits for an answer in `answers`.
    """

    def __init__(self) -> None:
        self.started: SimpleQueue[Delivery] = SimpleQueue()
        self.answers: SimpleQueue[Result | BaseException] = SimpleQueue()
        self.heard: list[str] = []

    def __call__(self, delivery: Delivery) -> Result:
        self.started.put(delivery)
        answer = self.answers.get(timeout=20)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def drain(self) -> None:
        self.heard.append("drain")

    def kill(self) -> None:
        self.heard.append("kill")


class Collecting:
    """A handler that succeeds and remembers."""

    def __init__(self) -> None:
        self.handled: list[Delivery] = []

    def __call__(self, delivery: Delivery) -> Result:
        self.handled.append(delivery)
        return SUCCESS

    def drain(self) -> None:
        return

    def kill(self) -> None:
        return

    @property
    def payloads(self) -> list[str]:
        return [delivery.message.payload.decode() for delivery in self.handled]


@contextmanager
def running(
    server: Server, handler: Handler, *, topic: str = "t", **options: Any
) -> Iterator[Consumer]:
    """Run a consumer of group g in a thread; it is stopped at the end."""
    failed: list[BaseException] = []
    with session(server) as opened:
        consumer = Consumer(
            opened, ConsumerOptions((topic,), "g", **options), handler=handler
        )

        def run() -> None:
            try:
                consumer.run()
            except BaseException as error:  # noqa: BLE001 - the test's thread raises it
                failed.append(error)

        thread = Thread(target=run)
        thread.start()
        try:
            yield consumer
        finally:
            consumer.stop()
            thread.join(20)
        assert not thread.is_alive(), "the consumer does not end"
        if failed:
            raise failed[0]
