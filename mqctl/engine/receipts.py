"""Settling by receipt: fenced by ownership of the entry, not by any lease."""

from dataclasses import dataclass, replace

from mqctl.codecs import native
from mqctl.core import backoff
from mqctl.core.errors import MqError, NotFound, Undecodable
from mqctl.core.handler import Outcome
from mqctl.core.message import Death, Delivery, Message
from mqctl.core.options import ConsumerOptions
from mqctl.core.receipts import Receipt
from mqctl.core.verdict import Retry, attempts_made, limit
from mqctl.engine import payloads
from mqctl.engine.burial import Burial
from mqctl.engine.mover import Mover
from mqctl.engine.session import Session
from mqctl.engine.settle import Settlement, Step, settle_all
from mqctl.store.wire import ServerError


@dataclass(frozen=True, slots=True)
class Order:
    """What is wanted: SUCCESS, RETRY or DEAD; delay None = by the backoff."""

    outcome: Outcome
    delay_ms: int | None = None
    reason: str = ""


class Settler:
    """Settles receipts, each by one script, many in one trip.

    Results: done; already (not pending any more); lost (pending, but under another
    consumer or count); not_found (no such topic, group or entry).
    """

    def __init__(self, session: Session, *, java_codec: str = "auto") -> None:
        self._session = session
        self._burial = Burial(session, java_codec)

    def settle(self, receipts: list[Receipt], order: Order) -> list[str]:
        """Settle; return one result for each receipt, in their order."""
        results: list[str | None] = [None] * len(receipts)
        ready: list[tuple[int, Settlement]] = []
        for i, receipt in enumerate(receipts):
            try:
                step = self._step(receipt, order)
            except NotFound:
                results[i] = "not_found"
                continue
            if isinstance(step, str):
                results[i] = step
                continue
            ready.append((i, _settlement(receipt, step)))
        answers = settle_all(self._session, [s for _, s in ready])
        for (i, _), answer in zip(ready, answers, strict=True):
            if not isinstance(answer, NotFound):
                results[i] = answer.results[0]
        return [r or "not_found" for r in results]

    def _step(self, receipt: Receipt, order: Order) -> Step | str:
        if order.outcome is Outcome.SUCCESS:
            return Step("ack", receipt.id, deliveries=receipt.deliveries)
        delivery = self._delivery(receipt)
        if isinstance(delivery, str):
            return delivery
        if delivery.message.payload_ref is not None:
            step = self._bury(receipt, *_bodiless(delivery))
        elif order.outcome is Outcome.DEAD:
            reason = order.reason or "manual"
            step = self._bury(receipt, delivery.message, reason, "", delivery.attempt)
        elif delivery.attempt > delivery.limit:
            step = self._bury(
                receipt, delivery.message, "exhausted", order.reason, delivery.attempt
            )
        else:
            step = self._again(receipt, delivery, order.delay_ms)
        return replace(step, deliveries=receipt.deliveries)

    def _again(self, receipt: Receipt, delivery: Delivery, delay: int | None) -> Step:
        options = ConsumerOptions((receipt.topic,), receipt.group)
        if delay is None:
            delay = backoff.delay_ms(
                delivery.attempt, options.retry_base_ms, options.retry_cap_ms
            )
        mover = Mover(self._session, options, lambda _: None)
        return mover.step(delivery, Retry(delivery.attempt, delay))

    def _bury(
        self, receipt: Receipt, message: Message, reason: str, detail: str, made: int
    ) -> Step:
        death = Death(
            reason,
            detail,
            group=receipt.group,
            consumer=receipt.consumer,
            attempts=made,
        )
        return self._burial.step(message, death)

    def _delivery(self, receipt: Receipt) -> Delivery | str:
        """Read the message that the receipt is about; a word when it is not there."""
        session = self._session
        stream = session.keys.partition(receipt.topic, receipt.partition)
        rows, found = session.wire.batch(
            [
                ("XPENDING", stream, receipt.group, receipt.id, receipt.id, 1),
                ("XRANGE", stream, receipt.id, receipt.id),
            ]
        )
        for reply in (rows, found):
            if isinstance(reply, ServerError):
                raise reply.explained("reading the entry")
        if not rows:
            return "already"
        if not found:
            return "not_found"
        message = self._message(receipt, found[0][1])
        made = attempts_made(message.retry_count, receipt.deliveries)
        allowed = limit(message.max_retries, ConsumerOptions(("t",), "g").retry_max)
        return Delivery(
            message,
            receipt.group,
            receipt.consumer,
            receipt.deliveries,
            made + 1,
            allowed,
        )

    def _message(self, receipt: Receipt, flat: list[bytes]) -> Message:
        try:
            message = native.decode(receipt.topic, receipt.partition, receipt.id, flat)
        except Undecodable as error:
            raise MqError(error.message) from error
        (loaded,) = payloads.load(self._session, [message])
        return message if loaded is None else loaded


def _bodiless(delivery: Delivery) -> tuple[Message, str, str, int]:
    """Return message, reason, detail and attempts for one whose body is gone."""
    message = delivery.message
    detail = f"the body {message.payload_ref} is gone"
    made = delivery.attempt - 1
    return payloads.marked_missing(message), "payload-missing", detail, made


def _settlement(receipt: Receipt, step: Step) -> Settlement:
    return Settlement(
        receipt.topic,
        receipt.partition,
        receipt.group,
        receipt.consumer,
        steps=[step],
        fence="entry",
    )
