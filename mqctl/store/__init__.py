"""Redis, and only here: the wire, the connection, the scripts, the server."""
