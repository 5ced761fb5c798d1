"""Profiles: read, chosen, changed without losing what else the file says."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqctl.config import toml
from mqctl.config.profiles import Profiles, parse, set_current, set_value
from mqctl.config.values import Value
from mqctl.core.errors import BadConfig

FILE = """\
# mine
current = "prod"

[profiles.prod] # the real one
url = "redis://prod"  # east
batch = 50

[profiles."a b"]
batch = 1
"""

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values: st.SearchStrategy[Value] = st.one_of(
    names, st.integers(-(2**63), 2**63 - 1), st.booleans(), st.lists(names, max_size=3)
)
keys = st.sampled_from(["batch", "url", "header", "from"])
tables = st.dictionaries(names, st.dictionaries(keys, values, max_size=3), max_size=3)


@given(tables, names)
def test_what_is_written_is_read_back(
    profiles: dict[str, dict[str, Value]], current: str
) -> None:
    text = toml.document(current, profiles)

    assert tomllib.loads(text).get("profiles", {}) == profiles
    assert parse(text) == Profiles(current, profiles)


@given(tables, names, names, keys, st.none() | values)
def test_a_change_changes_one_value(
    profiles: dict[str, dict[str, Value]],
    current: str,
    profile: str,
    key: str,
    value: Value | None,
) -> None:
    before = Profiles(current, profiles)

    text = set_value(toml.document(current, profiles), profile, key, value)

    assert parse(text) == before.with_value(profile, key, value)
    assert parse(set_current(text, "x")).current == "x"


def test_a_change_leaves_comments_and_order_alone() -> None:
    text = set_value(FILE, "prod", "batch", 7)
    text = set_value(text, "a b", "url", "local")
    text = set_value(text, "new", "weight", 2)
    text = set_current(text, "new")

    assert text == (
        FILE.replace("batch = 50", "batch = 7")
        .replace("batch = 1\n", 'batch = 1\nurl = "local"\n')
        .replace('current = "prod"', 'current = "new"')
        + "\n[profiles.new]\nweight = 2\n"
    )


def test_a_value_is_removed_with_its_line() -> None:
    assert set_value(FILE, "prod", "batch", None) == FILE.replace("batch = 50\n", "")


@pytest.mark.parametrize(
    "text",
    [
        'profiles = {prod = {batch = 1, url = "x"}}\n',
        "[profiles]\nprod.batch = 1\nprod.url = 'x'\n",
        "[profiles.prod]\nbatch = 1\nurl = '''\nbatch = 2\n[profiles.prod]\n'''\n",
        "[ profiles . prod ]\n'batch' = 1\nurl = 'x'\n",
    ],
)
def test_a_file_of_another_style_is_changed_all_the_same(text: str) -> None:
    before = parse(text)

    after = parse(set_value(text, "prod", "batch", 9))

    assert after == before.with_value("prod", "batch", 9)
    assert after.tables["prod"]["url"] == before.tables["prod"]["url"]


def test_a_file_that_cannot_be_written_again_is_left_to_its_owner() -> None:
    text = "profiles = {prod = {batch = 1, more = {x = 1}}}\n"

    with pytest.raises(BadConfig, match="edit it by hand"):
        set_value(text, "prod", "batch", 9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x =", "it is not TOML"),
        ("batch = 1", "batch stands in no profile"),
        ("current = 1", "current must be the name"),
        ("profiles = 1", "profiles must be tables"),
        ("[profiles]\nprod = 1", "profiles.prod must be a table"),
    ],
)
def test_what_is_no_file_of_profiles_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadConfig, match=message):
        parse(text)


def test_the_current_profile_is_used_when_none_is_named() -> None:
    found = parse(FILE)

    assert found.select(None).name == "prod"
    assert found.select("a b").values == {"batch": 1}
    assert Profiles().select(None).values == {}


def test_a_built_in_profile_is_there_and_can_be_added_to() -> None:
    found = Profiles(tables={"starter": {"poll": "9s", "group": "g"}})

    assert found.select("starter").values == {
        "poll": "9s",
        "group": "g",
        "max_attempts": 3,
        "claim_idle": "60s",
        "claim_interval": "30s",
        "keep": 100_000,
        "keep_interval": "60s",
    }


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("prd", "no such profile: prd, did you mean prod?"),
        ("bad", "profile bad: no such setting: claim_idel, did you mean claim_idle?"),
    ],
)
def test_a_slip_is_named_with_what_was_meant(name: str, message: str) -> None:
    found = Profiles(tables={"prod": {}, "bad": {"claim_idel": "5m"}})

    with pytest.raises(BadConfig) as caught:
        found.select(name)

    assert caught.value.message == message
