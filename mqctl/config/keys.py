"""The names of settings in a profile, and which of them say the same thing.

A key is the long name of an option with `_` for `-`; where two commands share a name
and mean different things, each has its own. The environment name is MQCTL_ and the
key in capitals.
"""

from collections.abc import Mapping
from typing import Literal

from mqctl.core.errors import BadConfig

Origin = Literal["flag", "env", "profile", "default"]
ORIGINS: tuple[Origin, ...] = ("flag", "env", "profile", "default")

# Commands whose every option with an environment name may stand in a profile. Others
# take only the options that all commands have.
COMMANDS = frozenset(
    {
        "produce",
        "consume",
        "dlq consume",
        "admin create",
        "admin housekeep",
        "server start",
    }
)

_OF_ALL = """
    url password_file tls_ca tls_cert tls_key insecure
    key_prefix stream_key_prefix env quiet color
"""
_OF_SOME = """
    input file delim null key key_sep header partition partitions no_create
    max_retries batch max_len max_len_mode start_line max_bytes payload_ttl delay at
    dedupe_key dedupe_ttl keep_partition on_error empty resume rate print

    group topic_glob topic_regex exclude_regex consumer consumer_prefix create from
    shard weight where_key where_header tag workers poll max_in_flight max_partitions
    lease_ttl renew rebalance claim_idle claim_interval claim_batch claim retry_mode
    ordered max_attempts backoff retry_max retry_base retry_cap mover_interval
    mover_batch max_messages max_time idle_exit exit_when_empty fail_if_empty ack
    java_codec keep keep_for keep_interval keep_payloads ack_delete ackset_ttl
    honor_defer_ack stats ready_file metrics_port drain_timeout output format
    json_payload stdin handler_timeout map worker worker_proto

    fsync protected
"""
COMMON = frozenset(_OF_ALL.split())
# Known without importing the commands: a profile is read at every start.
KEYS = COMMON | frozenset(_OF_SOME.split())

# Two ways to say one thing: the one from the stronger origin silences the other.
RIVALS = (
    frozenset({"retry_max", "max_attempts"}),
    frozenset({"retry_mode", "ordered"}),
    frozenset({"backoff", "retry_base"}),
    frozenset({"backoff", "retry_cap"}),
    frozenset({"input", "null"}),
    frozenset({"delim", "null"}),
    frozenset({"key", "key_sep"}),
    frozenset({"delay", "at"}),
)


def check_key(key: str) -> str:
    """Return the key; BadConfig for one that no setting has."""
    if key not in KEYS:
        raise BadConfig(f"no such setting: {key}{meant(key, KEYS)}")
    return key


def meant(word: str, known: "frozenset[str]") -> str:
    """Return `, did you mean X?` for the nearest known word, or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(word.replace("-", "_").lower(), sorted(known), 1)
    return f", did you mean {near[0]}?" if near else ""


def overruled(origins: Mapping[str, Origin]) -> frozenset[str]:
    """Return the keys that a rival from a stronger origin silences."""
    rank = {key: ORIGINS.index(origin) for key, origin in origins.items()}
    return frozenset(
        key
        for pair in RIVALS
        if pair <= rank.keys()
        for key in pair
        if rank[key] > min(rank[other] for other in pair)
    )
