import pytest

from tests.scripts.conftest import KEYS, TOPIC, Scripts

COMMIT = KEYS.commit(TOPIC, 0)
LONG = 2**63 - 1


@pytest.mark.parametrize(
    ("known", "given", "raised"),
    [
        (None, "0-0", True),
        ("0-0", "0-0", False),
        ("5-1", "5-2", True),
        ("5-2", "5-1", False),
        ("5-2", "5-2", False),
        ("5-9", "5-10", True),
        ("9-0", "10-0", True),
        ("10-0", "9-99", False),
        (f"7-{LONG - 1}", f"7-{LONG}", True),
        (f"7-{LONG}", f"7-{LONG - 1}", False),
        (f"7-{2**64 - 2}", f"7-{2**64 - 1}", True),
        (f"{2**64 - 2}-3", f"{2**64 - 1}-2", True),
        (f"{2**64 - 1}-2", f"{2**64 - 2}-3", False),
        ("\x01kryo", "3-0", True),
    ],
)
def test_a_frontier_only_rises(
    lua: Scripts, known: str | None, given: str, raised: bool
) -> None:
    if known is not None:
        lua.call("HSET", COMMIT, "g", known)
    lua.call("HSET", COMMIT, "other", "1-1")
    assert lua.run("raise_frontier", [COMMIT], "g", given) == int(raised)
    stands = given if raised else known
    assert lua.hash(COMMIT) == {b"g": str(stands).encode(), b"other": b"1-1"}
