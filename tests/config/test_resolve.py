"""Who wins: flag, environment, profile, default."""

from itertools import product

import pytest

from mqctl.config.keys import KEYS, RIVALS, Origin, overruled
from mqctl.config.resolve import Resolved, Setting, resolve
from mqctl.config.values import Kind

BATCH = Setting("consume", "batch", "batch", ("MQCTL_BATCH",), Kind("number"), 10)
URL = Setting(
    "consume", "url", "url", ("MQCTL_URL", "REDIS_URL"), Kind("text"), "local"
)


@pytest.mark.parametrize(
    ("flag", "env", "profile"), list(product([True, False], repeat=3))
)
def test_the_strongest_origin_that_has_a_value_wins(
    flag: bool, env: bool, profile: bool
) -> None:
    found = resolve(
        BATCH,
        flags={"batch": 1} if flag else {},
        environ={"MQCTL_BATCH": "2"} if env else {"MQCTL_BATCH": ""},
        profile={"batch": 3} if profile else {},
    )

    wins: list[tuple[bool, object, Origin]] = [
        (flag, 1, "flag"),
        (env, "2", "env"),
        (profile, 3, "profile"),
        (True, 10, "default"),
    ]
    value, origin = next((v, o) for there, v, o in wins if there)
    assert (found.value, found.origin) == (value, origin)


def test_the_first_environment_name_that_is_set_counts() -> None:
    environ = {"MQCTL_URL": "a", "REDIS_URL": "b"}

    both = resolve(URL, flags={}, environ=environ, profile={})
    one = resolve(URL, flags={}, environ={"REDIS_URL": "b"}, profile={"url": "c"})

    assert (both.value, one.value) == ("a", "b")


def test_a_password_in_the_environment_beats_the_file_of_a_profile() -> None:
    setting = Setting(
        "", "password_file", "", ("MQCTL_PASSWORD_FILE",), Kind("text"), None
    )
    profile = {"password_file": "f"}

    alone = resolve(setting, flags={}, environ={}, profile=profile)
    beaten = resolve(
        setting, flags={}, environ={"MQCTL_PASSWORD": "x"}, profile=profile
    )

    assert (alone.value, beaten.value) == ("f", None)


def test_a_url_is_shown_without_its_password() -> None:
    assert Resolved(URL, "redis://:x@h", "env").shown == "redis://:***@h"
    assert Resolved(BATCH, 5, "env").shown == 5


def test_an_option_silences_its_rival_from_a_weaker_origin() -> None:
    assert overruled({"retry_max": "flag", "max_attempts": "profile"}) == {
        "max_attempts"
    }
    assert overruled({"ordered": "profile", "retry_mode": "env"}) == {"ordered"}
    assert overruled({"backoff": "profile", "retry_cap": "flag"}) == {"backoff"}


def test_rivals_of_the_same_origin_are_left_to_the_command() -> None:
    assert overruled({"delay": "flag", "at": "flag", "batch": "profile"}) == set()
    assert overruled({"at": "env"}) == set()


def test_rivals_are_settings() -> None:
    assert frozenset().union(*RIVALS) <= KEYS
