"""mqctl: partitioned, durable message queues on Redis and Valkey Streams."""

__version__ = "0.1.0"
