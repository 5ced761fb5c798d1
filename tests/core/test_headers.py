"""Transport headers are told from the application's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.core import headers as h


@pytest.mark.parametrize(
    "name",
    [
        "x-force-partition-id",
        "x-original-message-id",
        "x-original-timestamp",
        "x-retry-group",
        "x-replay-count",
        "partitionId",
        "x-payload-hash-ref",
        "x-payload-encoding",
        "x-payload-missing",
        "x-dead-reason",
        "x-dead-stderr",
    ],
)
def test_what_the_queue_writes_is_transport(name: str) -> None:
    assert h.is_transport(name)


@pytest.mark.parametrize(
    "name",
    ["", "trace-id", "x-request-id", "X-Dead-Reason", "payload", "x-payload", "x-dead"],
)
def test_any_other_name_is_the_application_s(name: str) -> None:
    assert not h.is_transport(name)


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", h.PARTITION, h.DEAD_REASON, h.PAYLOAD_REF])
        | st.text(max_size=8),
        st.text(max_size=4),
    )
)
def test_the_application_sees_its_own_headers_in_order_and_unchanged(
    headers: dict[str, str],
) -> None:
    before = dict(headers)
    seen = h.application(headers)
    assert list(seen.items()) == [
        (k, v) for k, v in headers.items() if not h.is_transport(k)
    ]
    assert headers == before
