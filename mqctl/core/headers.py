"""Header names that carry meaning, and which of them are transport."""

FORCE_PARTITION = "x-force-partition-id"
ORIGINAL_ID = "x-original-message-id"
ORIGINAL_TIMESTAMP = "x-original-timestamp"
RETRY_GROUP = "x-retry-group"
REPLAY_COUNT = "x-replay-count"
DEFER_ACK = "x-defer-ack"
PARTITION = "partitionId"
ORIGINAL_TOPIC = "originalTopic"
KEY = "key"

PAYLOAD_REF = "x-payload-hash-ref"
PAYLOAD_STORAGE = "x-payload-storage-type"
PAYLOAD_SIZE = "x-payload-original-size"
PAYLOAD_ENCODING = "x-payload-encoding"
PAYLOAD_MISSING = "x-payload-missing"
PAYLOAD_MISSING_REF = "x-payload-missing-ref"

DEAD_REASON = "x-dead-reason"
DEAD_DETAIL = "x-dead-detail"
DEAD_GROUP = "x-dead-group"
DEAD_CONSUMER = "x-dead-consumer"
DEAD_ATTEMPTS = "x-dead-attempts"
DEAD_EXIT_CODE = "x-dead-exit-code"
DEAD_SIGNAL = "x-dead-signal"
DEAD_STDERR = "x-dead-stderr"
DEAD_RAW = "x-dead-raw"

_TRANSPORT = frozenset(
    {
        FORCE_PARTITION,
        ORIGINAL_ID,
        ORIGINAL_TIMESTAMP,
        RETRY_GROUP,
        REPLAY_COUNT,
        PARTITION,
    }
)


def is_transport(name: str) -> bool:
    """Tell whether a header belongs to the queue and not to the application."""
    return name in _TRANSPORT or name.startswith(("x-payload-", "x-dead-"))


def application(headers: dict[str, str]) -> dict[str, str]:
    """Return the headers without the transport ones, in their order."""
    return {k: v for k, v in headers.items() if not is_transport(k)}
