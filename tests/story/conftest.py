"""Workers on the suite's server, which every story finds empty."""

from collections.abc import Iterator

import pytest

from tests.support.server import Server
from tests.support.worker import Workers, workers


@pytest.fixture
def crew(redis: Server) -> Iterator[Workers]:
    """Starts commands as child processes; none of them outlives the test."""
    with workers(redis) as started:
        yield started
