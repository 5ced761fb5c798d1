"""Profiles from the command line, and every option reachable in all four ways."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqctl.cli import settings
from mqctl.cli.config import _descend, _find
from mqctl.cli.main import run
from mqctl.cli.options import _COMMON
from mqctl.config import keys
from mqctl.config.file import CONFIG
from mqctl.config.keys import COMMANDS, COMMON, KEYS
from mqctl.config.profiles import BUILT_IN
from mqctl.config.resolve import Setting
from mqctl.config.toml import assignment
from mqctl.config.values import Kind, Value
from mqctl.store import embedded
from tests.support.server import Server, short_directory
from tests.support.shell import Result, environment, shell

Fd = pytest.CaptureFixture[bytes]

# The table of settings: command, option, key.
TABLE = {
    ("produce", "--partitions", "partitions"),
    ("admin create", "--partitions", "partitions"),
    ("consume", "--workers", "workers"),
    ("consume", "--batch", "batch"),
    ("consume", "--poll", "poll"),
    ("consume", "--lease-ttl", "lease_ttl"),
    ("consume", "--rebalance", "rebalance"),
    ("consume", "--renew", "renew"),
    ("consume", "--claim-interval", "claim_interval"),
    ("consume", "--claim-idle", "claim_idle"),
    ("consume", "--claim-batch", "claim_batch"),
    ("consume", "--max-in-flight", "max_in_flight"),
    ("consume", "--max-partitions", "max_partitions"),
    ("consume", "--retry-max", "retry_max"),
    ("consume", "--retry-base", "retry_base"),
    ("consume", "--retry-cap", "retry_cap"),
    ("consume", "--mover-batch", "mover_batch"),
    ("consume", "--mover-interval", "mover_interval"),
    ("consume", "--key-prefix", "key_prefix"),
    ("produce", "--key-prefix", "key_prefix"),
    ("consume", "--stream-key-prefix", "stream_key_prefix"),
    ("produce", "--stream-key-prefix", "stream_key_prefix"),
    ("consume", "--consumer-prefix", "consumer_prefix"),
    ("dlq consume", "--consumer-suffix", "dlq_consumer_suffix"),
    ("consume", "--group", "group"),
    ("dlq consume", "--group", "dlq_group"),
    ("produce", "--max-len", "max_len"),
    ("consume", "--keep", "keep"),
    ("consume", "--keep-for", "keep_for"),
    ("admin housekeep", "--max-age", "max_age"),
    ("produce", "--payload-ttl", "payload_ttl"),
    ("consume", "--keep-interval", "keep_interval"),
    ("admin housekeep", "--interval", "housekeep_interval"),
    ("admin housekeep", "--max-len", "housekeep_max_len"),
    ("admin housekeep", "--dlq-max-len", "dlq_max_len"),
    ("admin housekeep", "--dlq-retention", "dlq_retention"),
    ("consume", "--ack-delete", "ack_delete"),
    ("consume", "--ackset-ttl", "ackset_ttl"),
    ("consume", "--env", "env"),
    ("produce", "--env", "env"),
    ("consume", "--consumer", "consumer"),
    ("consume", "--max-attempts", "max_attempts"),
    ("consume", "--shard", "shard"),
    ("consume", "--java-codec", "java_codec"),
    ("server start", "--fsync", "fsync"),
}
# Promised, not there yet: whoever adds the option takes its line away, and adds its
# key to mqctl/config/keys.py.
MISSING = {
    ("dlq consume", "--consumer-suffix", "dlq_consumer_suffix"),
    ("dlq consume", "--group", "dlq_group"),
    ("admin housekeep", "--max-age", "max_age"),
    ("admin housekeep", "--interval", "housekeep_interval"),
    ("admin housekeep", "--max-len", "housekeep_max_len"),
    ("admin housekeep", "--dlq-max-len", "dlq_max_len"),
    ("admin housekeep", "--dlq-retention", "dlq_retention"),
}

CONTEXTS = {name: at for name in sorted(COMMANDS) if (at := _find(name.split()))}
SETTINGS = [s for at in CONTEXTS.values() for s in settings.of_command(at)]
ARGUMENTS = {
    "produce": ["t"],
    "consume": ["t", "--group", "g"],
    "admin create": ["t"],
}


def name_of(setting: Setting) -> str:
    return f"{setting.command} {setting.key}"


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of our own, not there yet, and an environment that says nothing else."""
    for name in list(os.environ):
        if name.startswith(("MQCTL_", "REDIS_")):
            monkeypatch.delenv(name)
    path = tmp_path / "config.toml"
    monkeypatch.setenv(CONFIG, str(path))
    monkeypatch.setenv("MQCTL_DATA_DIR", "/dev/null/never")
    return path


def mqctl(capfdbinary: Fd, *words: str) -> Result:
    """Run a command line in this process."""
    capfdbinary.readouterr()
    code = run(list(words))
    out, err = capfdbinary.readouterr()
    return Result(code, out, err.decode())


def explain(capfdbinary: Fd, *words: str) -> dict[str, tuple[object, str]]:
    """Return value and origin of each setting by its key."""
    done = mqctl(capfdbinary, "config", "explain", *words, "-o", "ndjson")
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in done.out.splitlines()]
    return {row["setting"]: (row["value"], row["origin"]) for row in rows}


def another(setting: Setting) -> Value:
    """Return a value that is not the default and that the option takes."""
    kind: Kind = setting.kind
    if kind.choices:
        return next(c for c in kind.choices if c != setting.default)
    samples: dict[str, Value] = {
        "switch": True,
        "list": ["a=b", "c=d"],
        "number": 7,
        "duration": "7m",
        "size": "7KB",
        "rate": "7/s",
    }
    return samples.get(kind.name, "7")


# -- every option ---------------------------------------------------------------


def test_every_option_that_may_stand_in_a_profile_has_a_known_key() -> None:
    found = {s.key for s in SETTINGS}

    assert found | {"protected"} == KEYS, "mqctl/config/keys.py names them all"


def test_the_common_options_are_settings_of_every_command() -> None:
    said = {"profile_name", "verbose"}
    named = {"env" if name == "env_name" else name for name in _COMMON}

    assert named - said == COMMON
    assert {s.key for s in settings.of_command(_descend(["tail"]))} == COMMON


def test_every_long_option_of_a_worker_and_a_producer_is_a_setting() -> None:
    single = {"--help", "--verbose", "--profile"}  # they belong to one call
    for command in ("produce", "consume"):
        own = {s.parameter for s in SETTINGS if s.command == command}
        for parameter in CONTEXTS[command].command.params:
            if parameter.param_type_name == "option" and parameter.name not in own:
                assert set(parameter.opts) & single, parameter.opts


def test_the_table_of_settings_is_kept_but_for_what_is_missing() -> None:
    there = {
        (s.command, option, s.key)
        for s in SETTINGS
        for p in CONTEXTS[s.command].command.params
        if p.name == s.parameter
        for option in p.opts
    }

    assert TABLE - there == MISSING


@pytest.mark.parametrize("setting", SETTINGS, ids=name_of)
def test_an_option_is_reachable_by_profile_and_environment(
    setting: Setting, config: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: Fd
) -> None:
    value = another(setting)
    words = setting.command.split()
    config.write_text(f"[profiles.default]\n{assignment(setting.key, value)}\n")
    in_profile = explain(capfdbinary, *words)

    text = " ".join(value) if isinstance(value, list) else str(value)
    monkeypatch.setenv(setting.environment[0], text)
    in_environment = explain(capfdbinary, *words)

    assert in_profile[setting.key] == (value, "profile")
    assert in_environment[setting.key] == (text, "env")
    assert setting.environment[0] == f"MQCTL_{setting.key.upper()}"


@pytest.mark.parametrize("setting", SETTINGS, ids=name_of)
def test_a_command_takes_what_explain_says(
    setting: Setting, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = another(setting)

    def parsed() -> tuple[Any, str]:
        at = CONTEXTS[setting.command]
        arguments = list(ARGUMENTS.get(setting.command, []))
        if setting.key == "group":
            arguments = ["t"]
        context = at.command.make_context(at.info_name, arguments, parent=at.parent)
        taken = context.params[setting.parameter]
        if isinstance(taken, tuple):
            taken = list(taken)
        return taken, settings.origin_of(context, setting.parameter)

    config.write_text(f"[profiles.default]\n{assignment(setting.key, value)}\n")
    from_profile = parsed()
    text = " ".join(value) if isinstance(value, list) else str(value)
    monkeypatch.setenv(setting.environment[0], text)
    from_environment = parsed()

    assert from_profile == (value, "profile")
    assert from_environment == (value, "env")


def test_what_one_environment_name_means_does_not_depend_on_the_command() -> None:
    kinds: dict[str, set[str]] = {}
    for setting in SETTINGS:
        kinds.setdefault(setting.environment[0], set()).add(setting.kind.name)

    # One partition for produce, a list of them for consume.
    assert {name for name, found in kinds.items() if len(found) > 1} == {
        "MQCTL_PARTITION"
    }


# -- the order ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flag", "env", "profile", "partitions"),
    [
        ("2", "3", "4", 2),
        (None, "3", "4", 3),
        (None, "", "4", 4),
        (None, None, None, 1),
    ],
)
def test_a_flag_wins_over_environment_profile_and_default(
    redis: Server,
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: Fd,
    flag: str | None,
    env: str | None,
    profile: str | None,
    partitions: int,
) -> None:
    if env is not None:
        monkeypatch.setenv("MQCTL_PARTITIONS", env)
    if profile:
        config.write_text(f"[profiles.default]\npartitions = {profile}\n")
    given = ["--partitions", flag] if flag else []

    mqctl(capfdbinary, "produce", "-u", redis.url, "t", "x", *given)

    done = mqctl(capfdbinary, "admin", "partitions", "-u", redis.url, "t")
    assert json.loads(done.out)["partitions"] == partitions


def test_the_server_is_named_by_the_profile_that_is_chosen(
    redis: Server, config: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: Fd
) -> None:
    config.write_text(
        "current = 'wrong'\n[profiles.wrong]\nurl = 'unix:///nowhere'\n"
        f"[profiles.right]\nurl = '{redis.url}'\n"
    )

    wrong = mqctl(capfdbinary, "produce", "t", "x")
    flag = mqctl(capfdbinary, "produce", "--profile", "right", "t", "x")
    monkeypatch.setenv("MQCTL_PROFILE", "right")
    env = mqctl(capfdbinary, "produce", "t", "x")

    assert (wrong.code, flag.code, env.code) == (69, 0, 0)
    assert redis.call("XLEN", "stream:topic:t:p:0") == 2


def test_explain_tells_flags_of_its_own_line_too(config: Path, capfdbinary: Fd) -> None:
    config.write_text("[profiles.default]\nurl = 'local:a'\nenv = 'x'\n")

    found = explain(capfdbinary, "consume", "--url", "redis://:secret@h")

    assert found["url"] == ("redis://:***@h", "flag")
    assert found["env"] == ("x", "profile")
    assert found["workers"] == (8, "default")


def test_explain_without_a_command_tells_common_settings_once(capfdbinary: Fd) -> None:
    done = mqctl(capfdbinary, "config", "explain")

    rows = [json.loads(line) for line in done.out.splitlines()]
    pairs = [(row["command"], row["setting"]) for row in rows]
    assert len(pairs) == len(set(pairs))
    assert {s for c, s in pairs if c is None} == COMMON | {"fsync", "protected"}
    assert ("consume", "batch") in pairs
    assert list(rows[0]) == ["command", "setting", "value", "origin"]


def test_a_flag_silences_the_profile_that_says_the_same_thing_otherwise(
    redis: Server, config: Path, capfdbinary: Fd, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text("[profiles.default]\nmax_attempts = 9\nretry_base = '0'\n")
    mqctl(capfdbinary, "produce", "-u", redis.url, "t", "x")
    words = ["consume", "-u", redis.url, "t", "-g", "g", "-e", "--retry-max", "0"]

    done = mqctl(capfdbinary, *words, "--", "false")

    assert "1 received" in done.err
    assert "1 dead" in done.err
    monkeypatch.setenv("MQCTL_RETRY_MAX", "0")
    assert explain(capfdbinary, "consume")["max_attempts"] == (None, "default")


# -- the commands ---------------------------------------------------------------


def test_profiles_are_made_listed_shown_and_used(config: Path, capfdbinary: Fd) -> None:
    made = [
        mqctl(capfdbinary, "config", "set", "claim-idle", "10m"),
        mqctl(capfdbinary, "config", "set", "url", "redis://:secret@h:1"),
        mqctl(capfdbinary, "config", "set", "where_header", "a=1", "b=2"),
        mqctl(capfdbinary, "config", "set", "batch", "5", "--profile", "prod"),
        mqctl(capfdbinary, "config", "use", "prod"),
    ]

    assert [(m.code, m.out) for m in made] == [(0, b"")] * 5
    assert "secret" not in "".join(m.err for m in made)
    assert config.stat().st_mode & 0o777 == 0o600
    shown = mqctl(capfdbinary, "config", "show", "default")
    assert [json.loads(line) for line in shown.out.splitlines()] == [
        {"profile": "default", "setting": "claim_idle", "value": "10m"},
        {"profile": "default", "setting": "url", "value": "redis://:***@h:1"},
        {"profile": "default", "setting": "where_header", "value": ["a=1", "b=2"]},
    ]
    listed = mqctl(capfdbinary, "config", "list")
    assert [json.loads(line) for line in listed.out.splitlines()] == [
        {"profile": name, "current": name == "prod", "built_in": here, "settings": n}
        for name, here, n in [
            ("default", True, 3),
            ("prod", False, 1),
            ("starter", True, len(BUILT_IN["starter"])),
        ]
    ]
    assert explain(capfdbinary, "produce")["batch"] == (5, "profile")


def test_a_value_is_taken_back(config: Path, capfdbinary: Fd) -> None:
    mqctl(capfdbinary, "config", "set", "batch", "5")

    assert mqctl(capfdbinary, "config", "unset", "batch").code == 0
    again = mqctl(capfdbinary, "config", "unset", "batch")

    assert config.read_text() == "[profiles.default]\n"
    assert (again.code, again.err.splitlines()[0]) == (
        2,
        "mqctl: profile default does not set batch",
    )


def test_the_path_is_printed_whether_or_not_the_file_is_there(
    config: Path, capfdbinary: Fd
) -> None:
    assert mqctl(capfdbinary, "config", "path").out == f"{config}\n".encode()
    assert not config.exists()


def test_the_starter_profile_is_built_in(capfdbinary: Fd) -> None:
    assert mqctl(capfdbinary, "config", "use", "starter").code == 0

    found = explain(capfdbinary, "consume")
    for key, value in BUILT_IN["starter"].items():
        assert found[key] == (value, "profile")
    assert found["batch"] == (10, "default")


def test_every_value_of_a_built_in_profile_is_one_its_command_takes() -> None:
    assert BUILT_IN["starter"].keys() <= KEYS
    for name in BUILT_IN:
        done = shell("mqctl config explain", "local", MQCTL_PROFILE=name)
        assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("set clam_idle 5m", "no such setting: clam_idle, did you mean claim_idle?"),
        ("set claim_idle 5", "claim_idle: a duration needs a unit: 5"),
        ("set retry_mode later", "retry_mode must be one of requeue pending in-place"),
        ("set batch many", "batch must be a whole number, not many"),
        ("set protected maybe", "protected must be true or false, not maybe"),
        ("set url redis://:a@b@h", "cannot read the URL"),
        ("explain consum", "no such command: consum"),
    ],
)
def test_a_slip_on_the_command_line_changes_nothing(
    config: Path, capfdbinary: Fd, words: str, message: str
) -> None:
    done = mqctl(capfdbinary, "config", *words.split())

    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith(f"mqctl: {message}")
    assert not config.exists()


# -- bad files ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[profiles.default]\nclaim_idel = '5m'",
            "profile default: no such setting: claim_idel, did you mean claim_idle?",
        ),
        (
            "[profiles.default]\nclaim_idle = 300",
            "profile default: claim_idle: a duration needs a unit: 300",
        ),
        (
            "[profiles.default]\nbatch = 'x'",
            "profile default: batch must be a whole number, not 'x'",
        ),
        ("current = 'defualt'", "no such profile: defualt, did you mean default?"),
        ("url = 'local'", "the config file {}: url stands in no profile"),
        ("[profiles", "the config file {}: it is not TOML: "),
    ],
)
def test_a_file_that_cannot_be_meant_is_one_line_and_78(
    config: Path, capfdbinary: Fd, text: str, message: str
) -> None:
    config.write_text(text)

    done = mqctl(capfdbinary, "consume", "t", "-g", "g", "-e")

    first, *hint = done.err.splitlines()
    assert (done.code, done.out) == (78, b"")
    assert first.startswith(f"mqctl: {message.format(config)}")
    assert all(line.startswith("hint: ") for line in hint)
    assert len(hint) <= 1


def test_a_bad_file_stops_neither_help_nor_its_repair(
    config: Path, capfdbinary: Fd
) -> None:
    config.write_text("[profiles.default]\nclaim_idel = '5m'\n")

    assert mqctl(capfdbinary, "consume", "--help").code == 0
    assert b"claim_idel" in mqctl(capfdbinary, "config", "show").out
    assert mqctl(capfdbinary, "config", "unset", "claim_idel").code == 0
    assert explain(capfdbinary, "consume")["claim_idle"] == ("5m", "default")


def test_a_setting_of_another_command_is_none_of_this_ones_business(
    redis: Server, config: Path, capfdbinary: Fd
) -> None:
    config.write_text("[profiles.default]\npartition = '0,2'\nclaim_idle = 300\n")

    assert mqctl(capfdbinary, "admin", "topics", "-u", redis.url).code == 0
    refused = mqctl(capfdbinary, "produce", "-u", redis.url, "t", "x")
    assert "partition must be a whole number, not '0,2'" in refused.err


def test_a_profile_that_is_not_there_is_named_with_its_neighbour(
    capfdbinary: Fd,
) -> None:
    done = mqctl(capfdbinary, "admin", "topics", "--profile", "startr")

    assert done.code == 78
    assert "no such profile: startr, did you mean starter?" in done.err


@pytest.mark.parametrize(("mode", "said"), [(0o600, False), (0o644, True)])
def test_a_password_others_can_read_is_warned_about(
    config: Path, capfdbinary: Fd, mode: int, said: bool
) -> None:
    config.write_text("[profiles.default]\nurl = 'unix://:secret@/nowhere'\n")
    config.chmod(mode)

    done = mqctl(capfdbinary, "admin", "topics")

    warning = f"others can read the password in the config file: chmod 600 {config}"
    assert (warning in done.err) == said
    assert "secret" not in done.err


def test_errors_are_told_in_the_format_the_profile_asks_for(
    config: Path, capfdbinary: Fd
) -> None:
    config.write_text(
        "[profiles.default]\nurl = 'unix:///nowhere'\noutput = 'ndjson'\n"
    )

    done = mqctl(capfdbinary, "consume", "t", "-g", "g", "-e")

    assert json.loads(done.err)["error"]["exit"] == done.code == 69


# -- what a profile does beside giving values ------------------------------------


def test_a_protected_profile_wants_more_than_yes(
    redis: Server, config: Path, capfdbinary: Fd, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text("[profiles.default]\nprotected = true\n")
    mqctl(capfdbinary, "produce", "-u", redis.url, "t", "x")
    words = ["admin", "delete", "-u", redis.url, "t", "--yes"]

    refused = mqctl(capfdbinary, *words)
    there = redis.call("EXISTS", "stream:topic:t:p:0")
    monkeypatch.setenv("MQCTL_PROTECTED", "false")
    done = mqctl(capfdbinary, *words)

    assert (refused.code, there) == (6, 1)
    assert "the profile is protected" in refused.err
    assert done.code == 0
    assert not redis.call("EXISTS", "stream:topic:t:p:0")


@pytest.mark.parametrize(("typed", "code"), [("t", 0), ("yes", 6), ("", 6)])
def test_on_a_terminal_a_protected_profile_asks_for_the_topics_name(
    redis: Server, capfdbinary: Fd, typed: str, code: int
) -> None:
    mqctl(capfdbinary, "produce", "-u", redis.url, "t", "x")
    ours, theirs = os.openpty()
    os.write(ours, f"{typed}\n".encode())
    try:
        done = subprocess.run(
            [sys.executable, "-m", "mqctl", "admin", "delete", "t", "--yes"],
            env=environment(redis.url, MQCTL_PROTECTED="true"),
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=theirs,
            timeout=60,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)

    assert done.returncode == code
    assert redis.call("EXISTS", "stream:topic:t:p:0") == (code != 0)


@pytest.fixture
def directory() -> Iterator[Path]:
    with short_directory() as path:
        yield path


def test_a_local_server_started_on_demand_syncs_as_the_profile_says(
    directory: Path, config: Path, capfdbinary: Fd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MQCTL_DATA_DIR", str(directory))
    config.write_text("[profiles.default]\nfsync = 'everysec'\n")
    try:
        assert mqctl(capfdbinary, "produce", "t", "x").code == 0
        state = json.loads(mqctl(capfdbinary, "server", "status").out)
    finally:
        embedded.stop(embedded.locate("local", os.environ), 20)

    assert (state["running"], state["fsync"]) == (True, "everysec")


def test_without_a_file_nothing_is_loaded_for_it(redis: Server) -> None:
    script = "import sys; from mqctl.cli.main import run; run(sys.argv[1:]); "
    script += "print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script, "produce", "t", "x"],
        env=environment(redis.url),
        capture_output=True,
        text=True,
        check=True,
    )

    loaded = set(done.stdout.split())
    assert "mqctl.config.file" in loaded
    assert not {"tomllib", "mqctl.config.profiles"} & loaded
    assert not {"mqctl.config.resolve", "mqctl.config.values"} & loaded
    assert keys.__name__ in loaded
