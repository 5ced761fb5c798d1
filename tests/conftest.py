"""The servers: one embedded, one cluster node, per test process."""

from collections.abc import Iterator

import pytest

from tests.support.server import (
    Server,
    TestServer,
    embedded_server,
    short_directory,
    start_cluster_node,
)


@pytest.fixture(autouse=True, scope="session")
def no_profile() -> Iterator[None]:
    """Keep the profiles of whoever runs the tests out of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MQCTL_CONFIG", "/dev/null/never")
        yield


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The embedded server, with whatever earlier tests have left in it."""
    with short_directory() as directory, embedded_server(directory) as running:
        yield running


@pytest.fixture
def redis(server: Server) -> Server:
    """The embedded server, empty."""
    server.call("FLUSHALL")
    return server


@pytest.fixture(scope="session")
def cluster() -> Iterator[TestServer]:
    """A cluster of one node, with whatever earlier tests have left in it."""
    with short_directory() as directory:
        node = start_cluster_node(directory)
        try:
            yield node
        finally:
            node.stop()


@pytest.fixture
def cluster_redis(cluster: TestServer) -> TestServer:
    """The cluster of one node, empty."""
    cluster.call("FLUSHALL")
    return cluster
