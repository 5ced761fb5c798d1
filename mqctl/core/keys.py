"""Every key name, and which keys share a cluster slot.

| key | type | meaning |
|---|---|---|
| `S:{topic}:p:{i}` | stream | partition i |
| `S:{topic}:dlq` | stream | dead letters |
| `P:topics:registry` | set | topic names |
| `P:topic:{topic}:meta` | hash | partitionCount |
| `P:topic:{topic}:partitions` | set | stream keys, informational |
| `P:lease:{topic}:{group}:{i}` | string | holder of the partition |
| `P:retry:{topic}` | zset | item key -> due time, epoch ms |
| `P:retry:item:{topic}:{uuid}` | hash | a message waiting |
| `P:commit:{topic}:p:{i}` | hash | group -> finished up to this id |
| `P:acks:{topic}:p:{i}:{id}` | set | groups that acknowledged |
| `P:payload:{topic}:p:{i}:{uuid}` | string | a body stored aside, JSON |
| `P:payload:idx:{topic}`, `P:payload:ts` | set, zset | indices of bodies |
| `P:members:{group}` | zset | mqctl: live consumers -> last sign of life |
| `P:acked:{topic}:p:{i}` | hash | mqctl: group -> `ms consumer` of the last ack |
| `P:kept:{topic}:{group}:{i}` | hash | mqctl: the failed message waited for |
| `P:dedupe:{stream}:SHA1` | string | mqctl: `partition:id` first stored under a key |
| `P:dlq:replayed:{topic}` | hash | mqctl: dead letter id -> `count:ms` |

P and S are the control and stream prefixes. No segment is escaped, as in Java.
"""

from binascii import crc_hqx
from collections.abc import Iterable
from dataclasses import dataclass

CONTROL = "streaming:mq"
STREAM = "stream:topic"
"""The prefixes when none are asked for."""

_SLOTS = 16384


@dataclass(frozen=True, slots=True)
class KeySpace:
    """The names of all keys under one pair of prefixes."""

    control: str = CONTROL
    stream: str = STREAM

    def partition(self, topic: str, index: int) -> str:
        """Stream of one partition."""
        return f"{self.stream}:{topic}:p:{index}"

    def dlq(self, topic: str) -> str:
        """Stream of the topic's dead letters."""
        return f"{self.stream}:{topic}:dlq"

    @property
    def registry(self) -> str:
        """Set of topic names."""
        return f"{self.control}:topics:registry"

    def meta(self, topic: str) -> str:
        """Hash with `partitionCount`."""
        return f"{self.control}:topic:{topic}:meta"

    def partitions(self, topic: str) -> str:
        """Set of the topic's stream keys."""
        return f"{self.control}:topic:{topic}:partitions"

    def lease(self, topic: str, group: str, index: int) -> str:
        """Name of the consumer that owns the partition in the group."""
        return f"{self.control}:lease:{topic}:{group}:{index}"

    def retries(self, topic: str) -> str:
        """Sorted set of retry items by due time."""
        return f"{self.control}:retry:{topic}"

    def retry_item(self, topic: str, uuid: str) -> str:
        """Hash of one message that waits."""
        return f"{self.control}:retry:item:{topic}:{uuid}"

    def commit(self, topic: str, index: int) -> str:
        """Hash of the groups' frontiers."""
        return f"{self.control}:commit:{topic}:p:{index}"

    def acks(self, topic: str, index: int, entry_id: str) -> str:
        """Set of the groups that acknowledged one entry."""
        return f"{self.control}:acks:{topic}:p:{index}:{entry_id}"

    def payload(self, topic: str, index: int, uuid: str) -> str:
        """Body stored aside, a string."""
        return f"{self.payload_prefix}{topic}:p:{index}:{uuid}"

    @property
    def payload_prefix(self) -> str:
        """What every trusted body reference starts with."""
        return f"{self.control}:payload:"

    def payload_index(self, topic: str) -> str:
        """Set of the topic's body keys."""
        return f"{self.control}:payload:idx:{topic}"

    @property
    def payload_times(self) -> str:
        """Sorted set of all body keys by store time."""
        return f"{self.control}:payload:ts"

    def members(self, group: str) -> str:
        """Sorted set of the group's live mqctl consumers."""
        return f"{self.control}:members:{group}"

    def acked(self, topic: str, index: int) -> str:
        """Hash of each group's last acknowledgement."""
        return f"{self.control}:acked:{topic}:p:{index}"

    def kept(self, topic: str, group: str, index: int) -> str:
        """Hash of the failed message that a strictly ordered partition waits for."""
        return f"{self.control}:kept:{topic}:{group}:{index}"

    def dedupe(self, topic: str, index: int, digest: str) -> str:
        """Name the string that remembers a deduplication key, in its stream's slot."""
        stream = self.partition(topic, index)
        tagged = "{" in stream or "}" in stream
        wrapped = stream if tagged else f"{{{stream}}}"
        return f"{self.control}:dedupe:{wrapped}:{digest}"

    def replayed(self, topic: str) -> str:
        """Hash of dead letters that were replayed."""
        return f"{self.control}:dlq:replayed:{topic}"


def slot_of(key: str) -> int:
    """Return the cluster slot: CRC16 of the hash tag, or of the whole key."""
    raw = key.encode()
    start = raw.find(b"{")
    if start >= 0:
        end = raw.find(b"}", start + 1)
        if end > start + 1:
            raw = raw[start + 1 : end]
    return crc_hqx(raw, 0) % _SLOTS


def share_slot(keys: Iterable[str]) -> bool:
    """Tell whether one script may touch all of the keys on a cluster."""
    return len({slot_of(key) for key in keys}) <= 1
