"""Messages as values: what is sent, what is read, what is handed out, what died."""

from dataclasses import dataclass, field

from mqctl.core import headers as h


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message a producer wants stored. `key` None means none, b"" is a key.

    `line` is where it came from (1-based), `receipt` is passed through to the
    printed result.
    """

    payload: bytes
    key: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    partition: int | None = None
    max_retries: int | None = None
    line: int = 0
    receipt: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it stands in a stream.

    `payload` is the body as the producer gave it; empty while `payload_ref` names
    a body stored aside that has not been loaded. `headers` are all stored ones.
    """

    topic: str
    partition: int
    id: str
    payload: bytes
    key: bytes | None
    headers: dict[str, str]
    timestamp: str
    ts_ms: int
    retry_count: int = 0
    max_retries: int | None = None
    payload_ref: str | None = None
    first_id: str | None = None

    @property
    def original_id(self) -> str:
        """Return the id of the first delivery, the own id if it was never retried."""
        return self.headers.get(h.ORIGINAL_ID) or self.first_id or self.id

    @property
    def replay_count(self) -> int:
        """Return how many replays lie behind this copy."""
        return int_or(self.headers.get(h.REPLAY_COUNT), 0)

    @property
    def retry_group(self) -> str | None:
        """Return the only group this copy is meant for, None for all."""
        return self.headers.get(h.RETRY_GROUP)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message in the hands of one consumer of one group.

    `deliveries` is Redis's counter; `attempt` counts handling started, this time
    included; `limit` is the number of retries allowed after the first attempt.
    """

    message: Message
    group: str
    consumer: str
    deliveries: int
    attempt: int
    limit: int


@dataclass(frozen=True, slots=True)
class RetryItem:
    """A message that waits in the retry bucket until `due_ms` (epoch ms).

    `item` is the key of its hash, `retry_count` the one it will have when it is
    delivered. `original_id` None: it was never delivered before.
    """

    item: str
    topic: str
    partition: int
    payload: bytes
    key: bytes | None
    headers: dict[str, str]
    retry_count: int
    max_retries: int
    original_id: str | None
    due_ms: int


@dataclass(frozen=True, slots=True)
class Death:
    """Why a message was given up: the facts a dead letter carries in its headers."""

    reason: str
    detail: str = ""
    group: str = ""
    consumer: str = ""
    attempts: int = 0
    exit_code: int | None = None
    signal: str | None = None
    stderr: str = ""
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An entry of a dead-letter stream.

    `message.id` is the entry's own id, `message.partition` the partition the
    message came from (`partition_known` False when nothing says so), `last_id` the
    id of its last delivery. `codec` is kryo5, json or string.
    """

    message: Message
    death: Death
    failed_at_ms: int
    last_id: str | None
    partition_known: bool
    codec: str


def int_or(text: str | bytes | None, default: int) -> int:
    """Return the decimal integer in `text`, the default when it is none."""
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        return default
