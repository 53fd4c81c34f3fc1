"""Settings: one name in every source, a clear order, and errors that quote no value."""

import pickle
from pathlib import Path

import pytest

from ackbox.app.settings import Settings, load_settings, names, unknown_variables
from ackbox.app.urls import SecretUrl
from ackbox.outbox.errors import ConfigError

PASSWORD = "hunter2-Zq"


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run in an empty folder without any setting."""
    import os

    for name in list(os.environ):
        if name.startswith("ACKBOX_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_defaults_need_nothing(tmp_path: Path) -> None:
    """Without any source, every setting has its default and says so."""
    settings = load_settings()
    assert (settings.schema_name, settings.outbox, settings.lanes) == (
        "ackbox",
        "default",
        ("default",),
    )
    assert settings.database_url is None
    assert settings.redis_url is None
    assert settings.data_dir == tmp_path / ".ackbox"
    assert settings.in_flight_max == 16
    assert {source for _, _, source in settings.in_force()} == {"default"}


# One legal value per setting, as written in TOML and in the environment, and what it becomes.
EXAMPLES = [
    ("database_url", '"postgres://u@h/d"', "postgres://u@h/d", "postgresql+psycopg://u@h/d"),
    ("database_direct_url", '"postgresql://u@h/d"', "postgresql://u@h/d", None),
    ("database_pooler", '"transaction"', "Transaction", "transaction"),
    ("redis_url", '"redis://h:7/3"', "redis://h:7/3", "redis://h:7/3"),
    ("data_dir", '"/srv/x"', "/srv/x", "/srv/x"),
    ("schema", '"plans"', "plans", "plans"),
    ("outbox", '"west"', "west", "west"),
    ("lanes", '["a", "b"]', "a, b", "a,b"),
    ("tools", '["pkg.mod", "m:t"]', "pkg.mod,m:t", "pkg.mod,m:t"),
    ("worker_processes", "3", "3", "3"),
    ("in_flight_max", "7", "7", "7"),
    ("poll_seconds", "0.5", "0.5", "0.5"),
    ("plan", '"pkg.plan:plan"', "pkg.plan:plan", "pkg.plan:plan"),
    ("limits", "{ max_claims = 3 }", "max_claims=3", "max_claims=3"),
    ("log_level", '"debug"', "DEBUG", "debug"),
    ("log_format", '"json"', "JSON", "json"),
]


def test_every_setting_has_an_example() -> None:
    """The list above is complete, so a new setting is tested in every source."""
    assert {name for name, *_ in EXAMPLES} == set(names())


@pytest.mark.parametrize(("name", "toml", "text", "shown"), EXAMPLES)
def test_same_name_in_file_environment_and_flag(
    name: str,
    toml: str,
    text: str,
    shown: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A setting is read under one name from each source, and each is named as the origin."""

    def in_force(settings: Settings) -> tuple[str, str]:
        return {each: (value, source) for each, value, source in settings.in_force()}[name]

    file = tmp_path / "ackbox.toml"
    file.write_text(f"{name} = {toml}\n")
    from_file = in_force(load_settings())
    file.unlink()
    monkeypatch.setenv(f"ACKBOX_{name.upper()}", text)
    from_environment = in_force(load_settings())
    monkeypatch.delenv(f"ACKBOX_{name.upper()}")
    from_flag = in_force(load_settings({name: text}))
    assert from_file[0] == from_environment[0] == from_flag[0]
    assert from_file[0] == (shown or from_file[0])
    assert from_file[1] == f"file {file}"
    assert from_environment[1] == f"environment ACKBOX_{name.upper()}"
    assert from_flag[1] == f"flag --{name.replace('_', '-')}"


def test_flag_beats_environment_beats_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearer source wins; an empty variable and a flag that was not given do not count."""
    (tmp_path / "ackbox.toml").write_text('schema = "file"\noutbox = "file"\nlanes = ["file"]\n')
    monkeypatch.setenv("ACKBOX_SCHEMA", "environment")
    monkeypatch.setenv("ACKBOX_OUTBOX", "environment")
    monkeypatch.setenv("ACKBOX_LANES", "")
    settings = load_settings({"schema": "flag", "outbox": None})
    assert settings.schema_name == "flag"
    assert settings.outbox == "environment"
    assert settings.lanes == ("file",)


def test_config_variable_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ACKBOX_CONFIG is read in place of ackbox.toml, and a missing one is an error."""
    (tmp_path / "ackbox.toml").write_text('schema = "wrong"\n')
    other = tmp_path / "other.toml"
    monkeypatch.setenv("ACKBOX_CONFIG", str(other))
    with pytest.raises(ConfigError, match=r"other\.toml does not exist"):
        load_settings()
    other.write_text('schema = "right"\n')
    assert load_settings().schema_name == "right"


BAD_VALUES = [
    ("database_url", f"mysql://u:{PASSWORD}@h/d", "scheme 'mysql'"),
    ("database_url", f"postgresql://u:{PASSWORD}@h:port/d", "not a URL"),
    ("database_url", f"postgresql://u:{PASSWORD}@h", "names no database"),
    ("database_url", PASSWORD, "not a URL"),
    ("database_direct_url", f"http://u:{PASSWORD}@h/d", "scheme 'http'"),
    ("redis_url", f"http://:{PASSWORD}@h", "not a URL like redis"),
    ("redis_url", f"redis://:{PASSWORD}@h:port/0", "port or database number"),
    ("redis_url", PASSWORD, "not a URL like redis"),
    ("schema", "x; drop", "not a name"),
    ("lanes", "a b", "a lane has"),
    ("lanes", ",", "at least 1 item"),
    ("tools", "no-module", "not a module"),
    ("plan", "no plan", "not a module"),
    ("in_flight_max", "0", "greater than or equal to 1"),
    ("worker_processes", "many", "valid integer"),
    ("poll_seconds", "nan", "finite"),
    ("poll_seconds", "-1", "greater than 0"),
    ("log_level", "loud", "'debug', 'info'"),
    ("log_format", "xml", "'auto', 'json'"),
]


@pytest.mark.parametrize(("name", "value", "reason"), BAD_VALUES)
def test_wrong_value_names_setting_and_source_only(
    name: str, value: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error has three parts, names where the value came from, and never repeats it."""
    monkeypatch.setenv(f"ACKBOX_{name.upper()}", value)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    error = caught.value
    assert error.what.startswith(f"setting {name} has a wrong value")
    assert f"environment ACKBOX_{name.upper()}" in error.what
    assert reason in error.what
    assert "no effect exists" in error.effect_may_exist
    assert "ackbox config" in error.next_step
    assert PASSWORD not in str(error)
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_unknown_name_in_file_suggests_the_nearest(tmp_path: Path) -> None:
    """A typing error in the file is an error, and the right name is offered."""
    (tmp_path / "ackbox.toml").write_text(f'databse_url = "postgresql://u:{PASSWORD}@h/d"\n')
    with pytest.raises(ConfigError, match="'databse_url'") as caught:
        load_settings()
    assert "'database_url'" in caught.value.next_step
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(
    "text", [f'redis_url = "{PASSWORD}', f"{PASSWORD}", "\xff", "lanes = [", f"a = {PASSWORD}"]
)
def test_broken_file_is_told_by_its_place(text: str, tmp_path: Path) -> None:
    """A file that is no TOML is named with the place of the mistake, not with its content."""
    file = tmp_path / "ackbox.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"ackbox\.toml cannot be read \(") as caught:
        load_settings()
    assert PASSWORD not in str(caught.value)


def test_misspelt_variable_is_listed() -> None:
    """A variable with our prefix that is no setting is listed with the nearest setting."""
    environment = {
        "ACKBOX_DATABSE_URL": "x",
        "ACKBOX_REDIS_URL": "x",
        "ACKBOX_TEST_SERVICES": "x",
        "ACKBOX_POSTGRES_IMAGE": "x",
        "ACKBOX_ACTOR": "x",
        "HOME": "x",
    }
    assert unknown_variables(environment) == [("ACKBOX_DATABSE_URL", "ACKBOX_DATABASE_URL")]


@pytest.mark.parametrize(
    ("given", "normalised"),
    [
        ("postgres://u:p%40w@h/d", "postgresql+psycopg://u:p%40w@h/d"),
        ("postgresql://u@h/d?sslmode=require", "postgresql+psycopg://u@h/d?sslmode=require"),
        ("postgresql+psycopg:///d?host=/run", "postgresql+psycopg:///d?host=%2Frun"),
    ],
)
def test_postgres_urls_name_our_driver(given: str, normalised: str) -> None:
    """Every spelling of a PostgreSQL URL leads to psycopg, with nothing else changed."""
    settings = load_settings({"database_url": given})
    assert settings.database_url is not None
    assert settings.database_url.reveal() == normalised
    assert settings.direct_url == settings.database_url


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("database_url", f"postgresql://u:{PASSWORD}@h/d"),
        ("database_url", f"postgresql://h/d?user=u&password={PASSWORD}"),
        ("database_direct_url", f"postgres://u:{PASSWORD}@h/d"),
        ("redis_url", f"redis://:{PASSWORD}@h:1/0"),
        ("redis_url", f"rediss://u:{PASSWORD}@h:1/0"),
        ("redis_url", f"redis://h/0?password={PASSWORD}"),
        ("redis_url", f"unix://u:{PASSWORD}@/run/x.sock?db=1"),
    ],
)
def test_password_is_in_no_text_form(name: str, url: str) -> None:
    """Neither repr nor str nor the listing shows a password; `reveal` keeps the whole URL."""
    settings = load_settings({name: url})
    secret = getattr(settings, name)
    assert isinstance(secret, SecretUrl)
    assert PASSWORD in secret.reveal()
    shown = [repr(settings), str(settings), repr(secret), str(secret), f"{secret}"]
    shown += [value for _, value, _ in settings.in_force()]
    assert not [text for text in shown if PASSWORD in text]
    assert "@h" in str(secret) or "h/" in str(secret) or "/run" in str(secret)
    assert pickle.loads(pickle.dumps(secret)) == secret


@pytest.mark.parametrize("name", ["call_limit_seconds", "settle_seconds", "max_sends"])
def test_a_limit_that_tools_declare_is_refused_and_not_ignored(name: str) -> None:
    """Where it would change nothing, the setting says where the limit belongs."""
    with pytest.raises(ConfigError, match="belongs to each tool"):
        load_settings({"limits": f"{name}=3"})


def test_a_pooled_url_is_no_direct_one() -> None:
    """What needs a session is told so where the only URL leads to a pooler."""
    pooled = {"database_url": "postgres://u@h/d", "database_pooler": "transaction"}
    with pytest.raises(ConfigError, match="session of their own") as refused:
        _ = load_settings(pooled).direct_url
    assert "ACKBOX_DATABASE_DIRECT_URL" in refused.value.next_step
    past = load_settings({**pooled, "database_direct_url": "postgres://u@past/d"})
    assert "past" in str(past.direct_url)
    with pytest.raises(ConfigError, match="database_pooler"):
        load_settings({**pooled, "database_pooler": "true"})
