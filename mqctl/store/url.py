"""Where messages live: URL text to a typed endpoint. Pure; connects to nothing."""

from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

from mqctl.core.errors import BadUsage, Unsupported

Fsync = Literal["always", "everysec", "no"]
_TCP = {
    "redis": False,
    "valkey": False,
    "rediss": True,
    "valkeys": True,
    "redis+cluster": False,
    "rediss+cluster": True,
}


@dataclass(frozen=True, slots=True)
class Tls:
    """How the server's certificate is checked; paths to PEM files."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    insecure: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server's address. `local` names an embedded instance; else host or path.

    `fsync` is for an embedded instance that has to be started.
    """

    local: str | None = None
    host: str = ""
    port: int = 6379
    path: str | None = None
    db: int = 0
    username: str | None = None
    password: str | None = None
    tls: Tls | None = None
    fsync: Fsync = "always"

    @property
    def shown(self) -> str:
        """Return the address for people: never a password."""
        if self.local is not None:
            return self.local
        if self.path is not None:
            return f"unix://{self.path}"
        scheme = "rediss" if self.tls else "redis"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}" + (f"/{self.db}" if self.db else "")


def parse_url(url: str, *, password: str | None = None, tls: Tls | None) -> Endpoint:
    """Return the endpoint a URL names. `password` stands in when the URL has none.

    Raises BadUsage for a URL that cannot be meant; the message never holds the
    password.
    """
    if url == "local" or url.startswith("local:"):
        return Endpoint(local=url)
    scheme, found, rest = url.partition("://")
    if not found:
        raise BadUsage(
            "not a server URL: it has no scheme",
            hint="use local, redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH",
        )
    if scheme == "unix":
        return _unix(url, password)
    if scheme.endswith("+sentinel"):
        raise Unsupported(
            "redis+sentinel:// addresses are not supported yet",
            hint="give the master's own redis:// address",
        )
    if scheme not in _TCP:
        raise BadUsage(
            f"unknown URL scheme: {scheme}://",
            hint="schemes: local redis rediss valkey valkeys unix redis+cluster",
        )
    return _tcp(scheme, rest, password, tls or Tls())


def _unix(url: str, password: str | None) -> Endpoint:
    parts = urlsplit(url)
    path = unquote(parts.path or parts.netloc)
    if not path:
        raise BadUsage("unix:// URL without a path")
    db = 0
    for piece in filter(None, parts.query.split("&")):
        name, _, value = piece.partition("=")
        if name != "db" or not value.isdigit():
            raise BadUsage(f"unix:// URL: only ?db=N is known, not {name}")
        db = int(value)
    return Endpoint(
        path=path,
        db=db,
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else password,
    )


_ENCODE = "percent-encode / @ : # % [ in it, or set MQCTL_PASSWORD"


def _tcp(scheme: str, rest: str, password: str | None, tls: Tls) -> Endpoint:
    broken = BadUsage(
        "cannot read the URL: host or port is not valid; a password with special "
        "characters must be percent-encoded",
        hint=_ENCODE,
    )
    if rest.count("@") > 1:
        raise broken
    try:
        parts = urlsplit(f"redis://{rest.split(',', maxsplit=1)[0]}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise broken from None
    if not host:
        raise broken if "@" in rest else BadUsage("URL without a host")
    database = parts.path.strip("/")
    if (database and not database.isdigit()) or parts.fragment or "@" in parts.path:
        raise broken if "@" in rest else BadUsage(f"not a database number: {database}")
    return Endpoint(
        host=host,
        port=port if port is not None else 6379,
        db=int(database or 0),
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else password,
        tls=tls if _TCP[scheme] else None,
    )
