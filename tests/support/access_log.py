"""A web server's access log: few clients with many requests, many with few."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import accumulate
from random import Random

_PATHS = ("/", "/cart", "/pay", "/img/logo.png", "/search?q=%C3%BC", "/api/v1/items")
_AGENTS = ("curl/8.5", "Mozilla/5.0 (X11; Linux x86_64)", "Görlibot/1.0 (+ünï)")


def access_log(lines: int, *, clients: int = 2000, seed: int = 1) -> list[str]:
    r"""Return `ADDRESS\tLOG LINE` for each request; the n-th request ends in #n."""
    random = Random(seed)
    addresses = [
        f"{random.randrange(1, 224)}.{random.randrange(256)}.{i // 256}.{i % 256}"
        for i in range(clients)
    ]
    weights = list(accumulate(1 / rank for rank in range(1, clients + 1)))
    log = []
    for number in range(lines):
        (address,) = random.choices(addresses, cum_weights=weights)
        request = f"GET {random.choice(_PATHS)} HTTP/1.1"
        status = random.choice((200, 200, 200, 304, 404, 500))
        agent = random.choice(_AGENTS)
        log.append(
            f"{address}\t{address} - - [01/Dec/2026:00:00:{number % 60:02d} +0000]"
            f' "{request}" {status} {random.randrange(99999)} "-" "{agent}" #{number}'
        )
    return log


def number_of(line: str) -> int:
    """Return which request a line of the log is."""
    return int(line.rsplit("#", 1)[1])


def by_client(lines: Iterable[str]) -> dict[str, list[int]]:
    """Return each client's requests in the order of the lines, without their keys."""
    found: dict[str, list[int]] = defaultdict(list)
    for line in lines:
        found[line.split(" ", 1)[0]].append(number_of(line))
    return found
