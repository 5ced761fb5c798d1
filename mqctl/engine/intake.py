"""Entries to deliveries: decode, load bodies, decide what is not handed out."""

from dataclasses import dataclass, field

from mqctl.codecs import dead_letter, native
from mqctl.core import ids, verdict
from mqctl.core.clock import rfc3339
from mqctl.core.errors import Undecodable
from mqctl.core.filters import Filter
from mqctl.core.message import Death, Delivery, Message
from mqctl.engine import payloads
from mqctl.engine.assigned import Assigned
from mqctl.engine.burial import Burial
from mqctl.engine.claims import Claimed
from mqctl.engine.session import Session


@dataclass(slots=True)
class Intake:
    """Turns what was read into what is handed out.

    Entries that are not handed out get their step or acknowledgement at once: those
    addressed to another group or not meant by `where`, those that cannot be decoded,
    whose body is gone, or whose handler killed its consumer too often. `skipped`
    counts the first kind.
    """

    session: Session
    group: str
    consumer: str
    retry_max: int
    burial: Burial
    where: Filter = field(default_factory=Filter)
    skipped: int = 0

    def take(
        self, part: Assigned, entries: list[Claimed], *, strangers: bool
    ) -> list[Delivery]:
        """Return the deliveries of these entries of one partition, in their order.

        One trip when a body is stored aside, none otherwise.
        """
        decoded = [self._decode(part, e, strangers=strangers) for e in entries]
        pairs = [p for p in decoded if p is not None]
        if any(message.payload_ref for message, _ in pairs):
            pairs = self._loaded(part, pairs, strangers=strangers)
        handed = (
            self._deliver(part, message, deliveries, strangers=strangers)
            for message, deliveries in pairs
        )
        return [delivery for delivery in handed if delivery is not None]

    def _loaded(
        self, part: Assigned, pairs: list[tuple[Message, int]], *, strangers: bool
    ) -> list[tuple[Message, int]]:
        found = payloads.load(self.session, [message for message, _ in pairs])
        kept: list[tuple[Message, int]] = []
        for (message, deliveries), loaded in zip(pairs, found, strict=True):
            if loaded is None:
                self._missing(part, message, deliveries, strangers=strangers)
            else:
                kept.append((loaded, deliveries))
        return kept

    def _decode(
        self, part: Assigned, entry: Claimed, *, strangers: bool
    ) -> tuple[Message, int] | None:
        topic, index = part.slot
        try:
            message = native.decode(topic, index, entry.id, entry.flat)
        except Undecodable as error:
            ms = ids.parse(entry.id)[0]
            message = Message(
                topic, index, entry.id, error.payload, None, {}, rfc3339(ms), ms
            )
            death = self._death(
                "undecodable",
                error.message,
                entry.deliveries,
                raw=dead_letter.raw_of(error.fields),
            )
            part.steps.append(self.burial.step(message, death, strangers=strangers))
            return None
        theirs = message.retry_group not in {None, self.group}
        if theirs or (self.where and not self.where.takes(message)):
            part.acks.append(entry.id)
            self.skipped += 1
            return None
        return message, entry.deliveries

    def _missing(
        self, part: Assigned, message: Message, deliveries: int, *, strangers: bool
    ) -> None:
        made = verdict.attempts_made(message.retry_count, deliveries)
        detail = f"the body {message.payload_ref} is gone"
        death = self._death("payload-missing", detail, made)
        lost = payloads.marked_missing(message)
        part.steps.append(self.burial.step(lost, death, strangers=strangers))

    def _deliver(
        self, part: Assigned, message: Message, deliveries: int, *, strangers: bool
    ) -> Delivery | None:
        limit = verdict.limit(message.max_retries, self.retry_max)
        attempt: int | verdict.Dead = message.retry_count + 1
        if deliveries > 1:
            attempt = verdict.on_takeover(message.retry_count, deliveries, limit=limit)
        if isinstance(attempt, verdict.Dead):
            made = verdict.attempts_made(message.retry_count, deliveries)
            death = self._death(attempt.reason, attempt.detail, made)
            part.steps.append(self.burial.step(message, death, strangers=strangers))
            return None
        return Delivery(message, self.group, self.consumer, deliveries, attempt, limit)

    def _death(
        self, reason: str, detail: str, attempts: int, *, raw: str | None = None
    ) -> Death:
        return Death(
            reason,
            detail,
            group=self.group,
            consumer=self.consumer,
            attempts=attempts,
            raw=raw,
        )
