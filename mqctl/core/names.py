"""Which names topics, groups and consumers may have."""

import unicodedata

from mqctl.core.errors import BadUsage

_LONGEST = 255
_RESERVED = ("item:", "lock:", "idx:")


def check_name(kind: str, name: str) -> str:
    """Return a usable name; BadUsage for empty, too long or unprintable ones."""
    if not name:
        raise BadUsage(f"the {kind} name is empty")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise BadUsage(f"the {kind} name is not valid UTF-8: {name}") from None
    if size > _LONGEST:
        raise BadUsage(f"the {kind} name has {size} bytes, {_LONGEST} at most")
    if any(unicodedata.category(c) == "Cc" for c in name):
        raise BadUsage(f"the {kind} name holds control characters: {name}")
    return name


def check_topic(name: str) -> str:
    """Return a usable topic name; BadUsage where it would collide with other keys."""
    check_name("topic", name)
    if name.startswith(_RESERVED):
        prefix = name.split(":", 1)[0]
        raise BadUsage(
            f"topic names cannot begin with {prefix}: (they would collide with the "
            "keys of retries and payloads)",
            topic=name,
        )
    return name


def check_new_group(name: str) -> str:
    """Return a usable name for a new group; BadUsage for a colon in it."""
    check_name("group", name)
    if ":" in name:
        raise BadUsage("new group names cannot hold a colon", group=name)
    return name
