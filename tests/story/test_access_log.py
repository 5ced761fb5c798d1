"""A log of web requests, keyed by client, read by a group that grows."""

from pathlib import Path

import pytest

from tests.support.access_log import access_log, by_client, number_of
from tests.support.server import Server
from tests.support.wait import wait_until
from tests.support.worker import QUICK, Workers, owners, pending, produce


@pytest.mark.parametrize(
    ("count", "partitions"),
    [(20_000, 4), pytest.param(100_000, 8, marks=pytest.mark.slow)],
)
def test_every_request_is_read_once_and_in_the_order_of_its_client(
    redis: Server, crew: Workers, tmp_path: Path, count: int, partitions: int
) -> None:
    log = access_log(count)
    first, second = log[: count // 2], log[count // 2 :]
    options = ("-K", "\t", "--partitions", str(partitions))
    out = tmp_path / "lines"  # of all of them, in the order in which they were written

    def lines() -> list[str]:
        return out.read_text().splitlines()

    produce(redis, "access", first, *options)
    with out.open("ab") as shared:
        team = [crew.consume("access", *QUICK, stdout=shared) for _ in range(3)]
        wait_until(lines, "first lines")
        team.append(crew.consume("access", *QUICK, stdout=shared))
    wait_until(
        lambda: len({*owners(redis, "access", partitions)} - {None}) == 4,
        "a share for each of the four",
    )
    produce(redis, "access", second, *options)
    wait_until(lambda: len(lines()) >= count, "all lines", timeout=60)
    assert [worker.stop() for worker in team] == [0] * 4

    assert sorted(map(number_of, lines())) == list(range(count))
    assert pending(redis, "access", partitions) == 0
    for client, numbers in by_client(lines()).items():
        assert numbers == sorted(numbers), client
