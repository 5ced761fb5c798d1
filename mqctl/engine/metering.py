"""Names of what the engine counts: the Java library's, and our own with more tags."""

from dataclasses import dataclass

from mqctl.core.assignment import Slot
from mqctl.core.meter import Meter

_JAVA = "redis_streaming_mq_"


@dataclass(frozen=True, slots=True)
class Metering:
    """Counts what happens to the messages of one consumer."""

    meter: Meter
    group: str
    consumer: str

    def consumed(self, slot: Slot, amount: int = 1) -> None:
        """Count messages handed out."""
        self._count("consumed_total", slot, amount)

    def acked(self, slot: Slot, amount: int) -> None:
        """Count messages handled and acknowledged."""
        self._count("acked_total", slot, amount)
        self._settled(slot, amount, "success", "")

    def retried(self, slot: Slot) -> None:
        """Count a message that is tried again."""
        self._count("retried_total", slot, 1)
        self._settled(slot, 1, "retry", "")

    def dead(self, slot: Slot, reason: str) -> None:
        """Count a dead letter."""
        self._count("dead_total", slot, 1)
        self._settled(slot, 1, "dead", reason)
        if reason == "payload-missing":
            self._count("payload_missing_total", slot, 1)

    def handled(self, slot: Slot, seconds: float) -> None:
        """Note how long a handler took."""
        topic, index = slot
        self.meter.time(
            f"{_JAVA}handle_latency_ms", seconds, topic=topic, partition=str(index)
        )

    def state(
        self,
        in_flight: int,
        bound: int,
        eligible: dict[str, int],
        leased: dict[str, int],
    ) -> None:
        """Set what is in hand, and how many partitions there are and are held."""
        gauge, consumer = self.meter.gauge, self.consumer
        gauge(f"{_JAVA}inflight", in_flight, consumer=consumer)
        gauge(f"{_JAVA}max_inflight", bound, consumer=consumer)
        for name, figures in (
            ("eligible_partitions", eligible),
            ("leased_partitions", leased),
        ):
            for topic, number in figures.items():
                gauge(
                    f"{_JAVA}{name}",
                    number,
                    consumer=consumer,
                    topic=topic,
                    group=self.group,
                )

    def _count(self, name: str, slot: Slot, amount: int) -> None:
        topic, index = slot
        self.meter.count(f"{_JAVA}{name}", amount, topic=topic, partition=str(index))

    def _settled(self, slot: Slot, amount: int, result: str, reason: str) -> None:
        topic, index = slot
        self.meter.count(
            "mqctl_settled_total",
            amount,
            topic=topic,
            partition=str(index),
            group=self.group,
            result=result,
            reason=reason,
        )


def count_produced(meter: Meter, topic: str, partition: int, amount: int) -> None:
    """Count messages stored."""
    meter.count(f"{_JAVA}produced_total", amount, topic=topic, partition=str(partition))
