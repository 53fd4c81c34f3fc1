"""The settings of the applications: one name each, whatever they are read from.

Flag, then environment (`ACKBOX_` and the name in capitals), then `ackbox.toml` (or the file that
ACKBOX_CONFIG names), then the default. Nothing needs a file. The library never reads settings:
only applications do, here, and hand on what they need. May import pydantic: every command waits
for this module.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
)

from ..outbox.errors import ConfigError
from ..outbox.pooler import Pooler, no_session
from .limit_values import limit_values
from .urls import SecretUrl, database_url, redis_url

PREFIX = "ACKBOX_"
CONFIG_VARIABLE = "ACKBOX_CONFIG"
CONFIG_FILE = "ackbox.toml"
DEFAULT_SOURCE = "default"
_NOTHING_STARTED = "Nothing was started, and no effect exists."
# Variables with the prefix that are no settings of an application.
_OTHER_VARIABLES = re.compile(
    r"ACKBOX_(CONFIG|ACTOR|TEST_.*|[A-Z]+_IMAGE|DRAINER|CONSUMER|FAULT_PLAN|TERM_GRACE_SECONDS)"
)


def _split(value: Any) -> Any:
    """Read a list as written in the environment or on a command line: with commas."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path.expanduser()))


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _name(value: str) -> str:
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,49}", value):
        raise ValueError("not a name of 1 to 50 characters a-z, 0-9 and _, beginning with no digit")
    return value


def _tool_reference(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:[A-Za-z_]\w*)?", value):
        raise ValueError("not a module or module:attribute")
    return value


def _lane(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,50}", value):
        raise ValueError("a lane has 1 to 50 characters A-Z, a-z, 0-9, _ and -")
    return value


DatabaseUrl: TypeAlias = Annotated[SecretUrl, BeforeValidator(database_url)]
RedisUrl: TypeAlias = Annotated[SecretUrl, BeforeValidator(redis_url)]
Name: TypeAlias = Annotated[str, AfterValidator(_name)]
Lanes: TypeAlias = Annotated[
    tuple[Annotated[str, AfterValidator(_lane)], ...], BeforeValidator(_split)
]
Tools: TypeAlias = Annotated[
    tuple[Annotated[str, AfterValidator(_tool_reference)], ...], BeforeValidator(_split)
]
Limits: TypeAlias = Annotated[dict[str, Any], BeforeValidator(limit_values)]
Place: TypeAlias = Annotated[str, AfterValidator(_tool_reference)]
DatabasePooler: TypeAlias = Annotated[Pooler, BeforeValidator(_lower)]
LogLevel: TypeAlias = Annotated[
    Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)
]
LogFormat: TypeAlias = Annotated[Literal["auto", "json", "console"], BeforeValidator(_lower)]


class Settings(BaseModel):
    """Every setting with its default. Made by `load_settings`, which knows the sources."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, arbitrary_types_allowed=True
    )

    database_url: DatabaseUrl | None = Field(
        None, description="PostgreSQL; unset: the embedded server of data_dir"
    )
    database_direct_url: DatabaseUrl | None = Field(
        None, description="PostgreSQL past any pooler, for LISTEN and migrations; database_url"
    )
    database_pooler: DatabasePooler | None = Field(
        None, description="transaction: database_url leads to a pooler of that mode"
    )
    redis_url: RedisUrl | None = Field(
        None, description="Redis or Valkey; unset: the embedded server of data_dir"
    )
    data_dir: Annotated[Path, AfterValidator(_absolute)] = Field(
        Path(".ackbox"), validate_default=True, description="folder of the embedded servers"
    )
    schema_name: Name = Field(
        "ackbox", validation_alias="schema", description="the outbox's schema in the database"
    )
    outbox: Name = Field("default", description="name of the outbox, part of its queues' names")
    lanes: Lanes = Field(("default",), min_length=1, description="lanes that a worker serves")
    tools: Tools = Field((), description="modules with tools: module or module:attribute")
    plan: Place | None = Field(None, description="the plan that a consumer runs: module:attribute")
    worker_processes: int = Field(2, ge=1, le=256, description="worker processes in the pool")
    in_flight_max: int = Field(
        16, ge=1, le=10_000, description="open attempts per lane and process"
    )
    poll_seconds: float = Field(
        1.0, gt=0, le=3600, allow_inf_nan=False, description="longest wait where a ring was lost"
    )
    limits: Limits = Field(
        {}, description="limits that differ from their defaults: name=value, name=value"
    )
    log_level: LogLevel = Field("info", description="debug, info, warning or error")
    log_format: LogFormat = Field("auto", description="json, console, or auto: by the terminal")

    _sources: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def direct_url(self) -> SecretUrl | None:
        """The URL for LISTEN and migrations. Raises ConfigError where a pooler has the only one."""
        if self.database_pooler and self.database_url and not self.database_direct_url:
            raise no_session()
        return self.database_direct_url or self.database_url

    def source_of(self, name: str) -> str:
        """Say where a setting came from, as `ackbox config` prints it."""
        return self._sources.get(name, DEFAULT_SOURCE)

    def in_force(self) -> Iterator[tuple[str, str, str]]:
        """Yield each setting's name, its value without passwords, and its source."""
        for name, field in names().items():
            value = getattr(self, field)
            shown = ",".join(value) if isinstance(value, tuple) else value
            if isinstance(value, dict):
                shown = ",".join(f"{name}={number}" for name, number in sorted(value.items()))
            yield name, "" if shown is None else str(shown), self.source_of(name)


def names() -> dict[str, str]:
    """Map each setting's name, the same in every source, to the field that holds it."""
    fields = Settings.model_fields.items()
    return {str(info.validation_alias or field): field for field, info in fields}


def load_settings(
    flags: Mapping[str, Any] | None = None, config_file: Path | None = None
) -> Settings:
    """Read the settings: `flags` (None means not given), environment, file, defaults.

    Raises `ConfigError` that names the setting and its source, and never repeats a value.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer, source_text in _layers(flags or {}, config_file):
        for name, value in layer.items():
            values[name] = value
            sources[name] = source_text.format(variable=f"{PREFIX}{name.upper()}", flag=_flag(name))
    _require_known(values, sources)
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise _wrong_value(error, sources) from None
    settings._sources.update(sources)
    return settings


def unknown_variables(environment: Mapping[str, str] | None = None) -> list[tuple[str, str | None]]:
    """List variables that look like settings but are none, each with the nearest real name."""
    environment = os.environ if environment is None else environment
    known = {f"{PREFIX}{name.upper()}" for name in names()}
    found = (name for name in sorted(environment) if name.startswith(PREFIX))
    unknown = (name for name in found if not _OTHER_VARIABLES.fullmatch(name))
    return [(name, _nearest(name, known)) for name in unknown if name not in known]


def _layers(
    flags: Mapping[str, Any], config_file: Path | None
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the sources' values, the weakest source first, each with how to name it."""
    path = _config_path(config_file)
    if path is not None:
        yield _read_file(path), f"file {path}".replace("{", "{{").replace("}", "}}")
    yield _environment(), "environment {variable}"
    yield {name: value for name, value in flags.items() if value is not None}, "flag {flag}"


def _environment() -> Mapping[str, str]:
    """Return what variables say; an empty one says nothing."""
    given = {name: os.environ.get(f"{PREFIX}{name.upper()}") for name in names()}
    return {name: value for name, value in given.items() if value}


def _config_path(given: Path | None) -> Path | None:
    named = given or os.environ.get(CONFIG_VARIABLE)
    if named:
        path = _absolute(Path(named))
        if not path.is_file():
            raise ConfigError(
                f"the settings file {path} does not exist",
                effect_may_exist=_NOTHING_STARTED,
                next_step=f"correct {CONFIG_VARIABLE} or the flag --config, or unset it",
            )
        return path
    path = _absolute(Path(CONFIG_FILE))
    return path if path.is_file() else None


def _read_file(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode())
    except (tomllib.TOMLDecodeError, OSError, UnicodeDecodeError) as error:
        # A parser's message may quote the line, hence a password: only its place is repeated.
        place = re.search(r"\(at (line \d+, column \d+|end of document)\)", str(error))
        raise ConfigError(
            f"the settings file {path} cannot be read"
            + (f" ({place[1]})" if place else f" ({type(error).__name__})"),
            effect_may_exist=_NOTHING_STARTED,
            next_step=f"correct {path}",
        ) from None


def _require_known(values: Mapping[str, Any], sources: Mapping[str, str]) -> None:
    known = names()
    for name in values:
        if name not in known:
            nearest = _nearest(name, known)
            raise ConfigError(
                f"there is no setting {name!r} ({sources[name]})",
                effect_may_exist=_NOTHING_STARTED,
                next_step=f"write {nearest!r} instead" if nearest else "ackbox config",
            )


def _wrong_value(error: ValidationError, sources: Mapping[str, str]) -> ConfigError:
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    name = str(first["loc"][0])
    reason = str(first["msg"]).removeprefix("Value error, ")
    source = sources.get(name, DEFAULT_SOURCE)
    return ConfigError(
        f"setting {name} has a wrong value ({source}): {reason}",
        effect_may_exist=_NOTHING_STARTED,
        next_step=f"correct {name} in {source}, then: ackbox config",
    )


def _nearest(name: str, known: Any) -> str | None:
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.75)), None)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
