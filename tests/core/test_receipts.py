import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.core.errors import BadData
from mqctl.core.receipts import Receipt, format_receipt, parse_receipt

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
counts = st.integers(min_value=0, max_value=2**31)
receipts = st.builds(
    Receipt,
    topic=names,
    partition=counts,
    id=st.tuples(counts, counts).map(lambda pair: f"{pair[0]}-{pair[1]}"),
    group=names,
    consumer=names,
    deliveries=counts,
)


@given(receipts)
def test_a_receipt_reads_back_as_it_was_written(receipt: Receipt) -> None:
    text = format_receipt(receipt)
    assert parse_receipt(text) == receipt
    assert text.isascii()
    assert text.count(":") == 6


def test_names_are_percent_encoded() -> None:
    receipt = Receipt("a:b %~", 3, "5-0", "grün", "c.d_e-f", 2)
    assert format_receipt(receipt) == "r1:a%3Ab%20%25~:3:5-0:gr%C3%BCn:c.d_e-f:2"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "r2:a:0:5-0:g:c:1",
        "r1:a:0:5-0:g:c",
        "r1:a:0:5-0:g:c:1:2",
        "r1::0:5-0:g:c:1",
        "r1:a:x:5-0:g:c:1",
        "r1:a:0:5:g:c:1",
        "r1:a:0:99999999999999999999-0:g:c:1",
        "r1:a:0:5-0:g:c:-1",
        "r1:a%:0:5-0:g:c:1",
        "r1:a%zz:0:5-0:g:c:1",
        "r1:%ff:0:5-0:g:c:1",
        "r1:a b:0:5-0:g:c:1",
        "r1:a:٣:5-0:g:c:1",
        "r1:a:0:5-0:g:c:1\n",
        '{"id":"5-0"}',
    ],
)
def test_what_is_no_receipt_is_bad_data(text: str) -> None:
    with pytest.raises(BadData, match="not a receipt"):
        parse_receipt(text)
