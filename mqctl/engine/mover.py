"""When retries are moved, and how a failed delivery becomes a retry."""

from collections.abc import Callable, Iterable

from mqctl.codecs import native
from mqctl.core import verdict
from mqctl.core.clock import rfc3339
from mqctl.core.errors import OutOfMemory
from mqctl.core.message import Delivery
from mqctl.core.options import ConsumerOptions
from mqctl.engine import retries
from mqctl.engine.session import Session
from mqctl.engine.settle import Step

_DIRECT_MS = 50  # a retry due this soon is appended at once, as in Java
_FULL_PAUSE = 1.0


class Mover:
    """Moves due retries of the consumer's topics.

    When the next is due, as far as known here, and at the latest every mover interval.
    """

    def __init__(
        self, session: Session, options: ConsumerOptions, note: Callable[[str], None]
    ) -> None:
        self._session = session
        self._options = options
        self._note = note
        self._due: dict[str, float] = {}
        self._told: set[str] = set()

    @property
    def next_timer(self) -> float:
        """Return when (monotonic) the next topic is to be looked at."""
        return min(self._due.values(), default=self._session.clock.monotonic() + 1.0)

    def expect(self, topic: str, delay_ms: int) -> None:
        """Look at the topic again in `delay_ms` at the latest."""
        if topic in self._due:
            due = self._session.clock.monotonic() + delay_ms / 1000
            self._due[topic] = min(self._due[topic], due)

    def tick(self, topics: Iterable[str]) -> int:
        """Move what is due; return how many messages were moved."""
        clock = self._session.clock
        moved = 0
        known = set(topics)
        for gone in set(self._due) - known:
            del self._due[gone]
        for topic in known:
            now = clock.monotonic()
            if now < self._due.get(topic, 0.0):
                continue
            try:
                done = retries.move_due(self._session, topic, self._options.mover_batch)
            except OutOfMemory:
                self._due[topic] = now + _FULL_PAUSE
                self._say(f"the server has no memory left: retries of {topic} wait")
                continue
            moved += done.moved
            pause = self._options.mover_interval_ms
            if done.next_ms is not None:
                pause = min(pause, done.next_ms + 1)
            self._due[topic] = now + (0.0 if done.more else pause / 1000)
            self._warn(done.broken)
        return moved

    def _warn(self, broken: list[str]) -> None:
        for item in broken:
            self._say(f"retry item {item} cannot be moved: kept")

    def _say(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._note(text)

    def step(self, delivery: Delivery, retry: verdict.Retry) -> Step:
        """Return the step that stores the message again, for this group alone."""
        message, session = delivery.message, self._session
        if retry.delay_ms > _DIRECT_MS:
            return Step(
                "later",
                message.id,
                native.item_fields(
                    message, group=delivery.group, retry_count=retry.retry_count
                ),
                delay_ms=retry.delay_ms,
                item=session.keys.retry_item(message.topic, session.uuid()),
            )
        limit = message.max_retries
        fields = native.entry_fields(
            topic=message.topic,
            partition=message.partition,
            payload=message.payload,
            key=message.key,
            headers=native.retry_headers(message, delivery.group),
            timestamp=rfc3339(session.clock.now_ms()),
            retry_count=retry.retry_count,
            max_retries=3 if limit is None else limit,
        )
        return Step("again", message.id, fields)
