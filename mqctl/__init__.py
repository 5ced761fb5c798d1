"""mqctl: partitioned, durable message queues on Redis and Valkey Streams."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqctl.api import Client, Consumer, Producer, connect
    from mqctl.core.handler import Outcome, Result

__version__ = "0.1.0"
__all__ = ["Client", "Consumer", "Outcome", "Producer", "Result", "connect"]


def __getattr__(name: str) -> object:
    """Load the API when it is asked for: the command line starts without it."""
    if name in {"Outcome", "Result"}:
        from mqctl.core import handler

        return getattr(handler, name)
    if name in __all__:
        from mqctl import api

        return getattr(api, name)
    raise AttributeError(f"module 'mqctl' has no attribute {name!r}")
