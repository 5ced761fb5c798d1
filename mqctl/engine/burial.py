"""Writing dead letters: which codec, which facts, as a step of settling."""

from dataclasses import dataclass, field

from mqctl.codecs import dead_letter, native
from mqctl.core.message import Death, Delivery, Message
from mqctl.engine.session import Session
from mqctl.engine.settle import Step
from mqctl.store.wire import ServerError

_REMEMBER = 5.0


@dataclass(slots=True)
class Burial:
    """Makes the steps that bury messages of one group.

    `codec` auto follows what is there: the newest dead letter, else a commit hash
    written by Java, else a lease held by a stranger (a Java client with its default
    codec), else plain text. The finding is kept for five seconds per topic.
    """

    session: Session
    codec: str = "auto"
    _known: dict[str, tuple[float, str]] = field(default_factory=dict)

    def step(
        self,
        message: Message,
        death: Death,
        *,
        deliveries: int | None = None,
        strangers: bool = False,
        delivery: Delivery | None = None,
    ) -> Step:
        """Return the step that writes the dead letter, then acknowledges.

        `delivery` is what was handed out, if it was; `strangers`: somebody who does
        not beat holds a lease of the topic.
        """
        fields = dead_letter.encode(
            message,
            death,
            codec=self._codec(message.topic, strangers=strangers),
            failed_at_ms=self.session.clock.now_ms(),
            last_id=message.id,
        )
        return Step(
            "dead",
            message.id,
            fields,
            deliveries,
            reason=death.reason,
            body=message.payload,
            delivery=delivery,
        )

    def _codec(self, topic: str, *, strangers: bool) -> str:
        if self.codec != "auto":
            return self.codec
        now = self.session.clock.monotonic()
        known = self._known.get(topic)
        if known is None or now - known[0] > _REMEMBER:
            found = find_codec(self.session, topic, strangers=strangers)
            known = self._known[topic] = (now, found)
        return known[1]


def find_codec(session: Session, topic: str, *, strangers: bool) -> str:
    """Return the codec in which this topic's dead letters are written. Two trips."""
    keys = session.keys
    newest, stored = session.wire.batch(
        [
            ("XREVRANGE", keys.dlq(topic), "+", "-", "COUNT", 1),
            ("HGET", keys.meta(topic), "partitionCount"),
        ]
    )
    if not isinstance(newest, ServerError) and newest:
        return native.codec_of(newest[0][1])
    partitions = int(stored) if isinstance(stored, bytes) and stored.isdigit() else 1
    commits = session.wire.batch(
        [("HKEYS", keys.commit(topic, i)) for i in range(partitions)]
    )
    for fields in commits:
        if isinstance(fields, ServerError):
            continue
        for name in fields:
            codec = native.commit_codec(name)
            if codec != "string":
                return codec
    return "kryo5" if strangers else "string"
