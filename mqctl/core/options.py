"""How to consume: every setting with its default, checked once."""

from dataclasses import dataclass, field
from typing import Literal

from mqctl.core.claim_rule import ClaimMode, ClaimRule, RetryMode
from mqctl.core.errors import BadUsage
from mqctl.core.filters import Filter
from mqctl.core.retention import Retention
from mqctl.core.selection import Selection

AckDelete = Literal["none", "immediate", "all-groups-ack"]


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """Settings of one consumer; durations in milliseconds, 0 = no bound for counts.

    `partitions` names indices to take instead of a share. `position` is where groups
    begin that this consumer is the first to create (the text of `--from`). `ack` is
    auto, manual (nothing is settled, receipts are handed out) or none.
    """

    topics: tuple[str, ...]
    group: str
    topic_glob: str | None = None
    topic_regex: str | None = None
    exclude_regex: str | None = None
    consumer: str | None = None
    consumer_prefix: str = "consumer-"
    create: bool = False
    create_partitions: int = 1
    position: str = "start"
    partitions: tuple[int, ...] = ()
    shard: tuple[int, int] | None = None
    where: Filter = field(default_factory=Filter)
    workers: int = 8
    batch: int = 10
    poll_ms: int = 1000
    max_in_flight: int = 0
    max_partitions: int = 0
    weight: int = 1
    lease_ttl_ms: int = 15_000
    renew_ms: int = 3_000
    rebalance_ms: int = 5_000
    claim_idle_ms: int = 300_000
    claim_interval_ms: int = 30_000
    claim_batch: int = 50
    claim: ClaimMode = "on"
    retry_mode: RetryMode = "requeue"
    retry_max: int = 5
    retry_base_ms: int = 1_000
    retry_cap_ms: int = 60_000
    backoff: tuple[int, ...] = ()
    mover_interval_ms: int = 1_000
    mover_batch: int = 100
    max_messages: int = 0
    max_time_ms: int = 0
    idle_exit_ms: int = 0
    exit_when_empty: bool = False
    ack: str = "auto"
    java_codec: str = "auto"
    drain_timeout_ms: int = 30_000
    stats_ms: int = 0
    keep: int = 100_000
    keep_for_ms: int = 0
    keep_interval_ms: int = 60_000
    keep_payloads: bool = False
    ack_delete: AckDelete = "none"
    ackset_ttl_ms: int = 86_400_000
    honor_defer_ack: bool = False

    def __post_init__(self) -> None:
        if self.renew_ms * 2 >= self.lease_ttl_ms:
            raise BadUsage(
                "--renew must be less than half of --lease-ttl",
                hint="one late renewal must not cost a partition",
            )
        for name in ("workers", "batch", "claim_batch", "mover_batch"):
            if getattr(self, name) < 1:
                raise BadUsage(f"--{name.replace('_', '-')} must be at least 1")
        for name in ("lease_ttl_ms", "renew_ms", "claim_interval_ms", "rebalance_ms"):
            if getattr(self, name) < 1:
                flag = name.removesuffix("_ms").replace("_", "-")
                raise BadUsage(f"--{flag} must be more than 0")

    @property
    def retention(self) -> Retention:
        """Return what may be trimmed."""
        return Retention(
            self.keep, self.keep_for_ms, self.keep_interval_ms, self.keep_payloads
        )

    @property
    def claim_rule(self) -> ClaimRule:
        """Return when pending entries may be taken."""
        return ClaimRule(
            self.claim_idle_ms,
            self.retry_mode,
            self.claim,
            self.retry_base_ms,
            self.retry_cap_ms,
            self.backoff,
        )

    @property
    def selection(self) -> Selection:
        """Return which topics and partitions are wanted; BadUsage for none."""
        return Selection(
            self.topics,
            self.topic_glob,
            self.topic_regex,
            self.exclude_regex,
            self.partitions,
            self.shard,
        )

    @property
    def beat_ms(self) -> int:
        """Return the time between two signs of life."""
        return max(20, min(1000, self.lease_ttl_ms // 5))


@dataclass(slots=True)
class Summary:
    """What a consumer did. `left_*` and `next_delayed_ms` are the group's, at the end.

    `received` counts messages handed out; `duplicates_possible` those in hand when a
    lease was lost.
    """

    received: int = 0
    acked: int = 0
    retried: int = 0
    dead: int = 0
    skipped: int = 0
    duplicates_possible: int = 0
    left_in_work: int = 0
    left_delayed: int = 0
    duration_ms: int = 0
    next_delayed_ms: int | None = field(default=None, repr=False)
