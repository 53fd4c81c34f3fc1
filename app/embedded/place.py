"""Where the embedded servers keep their files, and whether their account can get there.

Normally everything stands in the data directory. Where the servers run under another account
(we are root) and that account cannot reach the data directory or the programs, their files go to
a folder of ours under the system's temporary folder; permissions of folders that are not ours
are never changed. May import the standard library and `outbox.errors`.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ...outbox.errors import ConfigError
from .account import UNPRIVILEGED, ServerAccount, choose_account
from .binaries import USE_OWN_SERVERS, PostgresPrograms, find_postgres, find_valkey
from .copies import copy_programs

# A socket's path has room for 107 bytes on Linux and 103 on macOS.
SOCKET_PATH_BYTES = 103
_LONGEST_SOCKET_NAME = "/.s.PGSQL.65535"
_POINTER = "base"


@dataclass(frozen=True, slots=True)
class Place:
    """The folders of one data directory and the programs that its servers run."""

    data_dir: Path
    base: Path
    socket_dir: Path
    account: ServerAccount
    postgres: PostgresPrograms
    valkey: Path

    @property
    def notice(self) -> str | None:
        """Say in one line where the servers' files are, when that is not the data directory."""
        if self.base == self.data_dir:
            return None
        return (
            f"the embedded servers keep their files in {self.base}, since they run as another "
            f"account that cannot reach {self.data_dir}; the system may clear that folder"
        )

    def server_folder(self, name: str) -> Path:
        """Make (once) and return a folder that belongs to the servers' account alone."""
        folder = self.base / name
        if not folder.exists():
            folder.mkdir(mode=0o700)
            self.account.give(folder)
        return folder


def choose_place(data_dir: Path) -> Place:
    """Decide where the servers' files stand; makes the folders it names.

    Raises `ConfigError` when no folder can be had that the servers' account can reach.
    """
    data_dir = _absolute(data_dir)
    account = choose_account()
    _make_data_dir(data_dir, account)
    place = Place(data_dir, data_dir, data_dir / "run", account, find_postgres(), find_valkey())
    place = _with_reachable_programs(place)
    place = replace(place, base=_choose_base(place))
    return replace(place, socket_dir=_choose_socket_dir(place))


def find_place(data_dir: Path) -> Place | None:
    """Find the place that a starter chose for a data directory, and change nothing.

    None when no server was ever started there. For asking servers that run, not for starting.
    """
    data_dir = _absolute(data_dir)
    base = _remembered_base(data_dir)
    if not base.is_dir():
        return None
    return Place(data_dir, base, base / "run", ServerAccount(), find_postgres(), find_valkey())


def _absolute(data_dir: Path) -> Path:
    return Path(os.path.abspath(data_dir.expanduser()))


def _remembered_base(data_dir: Path) -> Path:
    pointer = data_dir / _POINTER
    return Path(pointer.read_text().strip()) if pointer.is_file() else data_dir


def _make_data_dir(data_dir: Path, account: ServerAccount) -> None:
    try:
        data_dir.parent.mkdir(parents=True, exist_ok=True)
        if not data_dir.is_dir():
            data_dir.mkdir(mode=0o700)
            # Another account has to pass through; it still cannot list or write here.
            data_dir.chmod(0o711 if account.is_other else 0o700)
    except OSError as error:
        raise ConfigError(
            f"the data directory {data_dir} cannot be made: {error.strerror}",
            next_step=f"set ACKBOX_DATA_DIR to a folder you may write, or {USE_OWN_SERVERS}",
        ) from None


def _choose_base(place: Place) -> Path:
    """Keep to the base that was chosen before, so that data never seems to vanish."""
    remembered = _remembered_base(place.data_dir)
    if remembered != place.data_dir:
        return _own_folder(remembered)
    if not place.account.is_other or _is_reachable(place):
        return place.data_dir
    base = _temporary_folder(place.account, _digest(str(place.data_dir)))
    (place.data_dir / _POINTER).write_text(f"{base}\n")
    return base


def _is_reachable(place: Place) -> bool:
    return place.account.may_write(place.server_folder("run"))


def _choose_socket_dir(place: Place) -> Path:
    folder = place.server_folder("run")
    # Anybody may connect to the socket (the server asks for a password), so let them pass.
    folder.chmod(0o755)
    if len(os.fsencode(folder)) + len(_LONGEST_SOCKET_NAME) <= SOCKET_PATH_BYTES:
        return folder
    short = _temporary_folder(place.account, _digest(f"{place.base}/socket"))
    return _choose_socket_dir(replace(place, base=short))


def _with_reachable_programs(place: Place) -> Place:
    """Copy the programs where the servers' account cannot reach the installed ones."""
    account, postgres, valkey = place.account, place.postgres, place.valkey
    if not account.is_other or (account.may_run(postgres.initdb) and account.may_run(valkey)):
        return place
    stamp = postgres.postgres.stat().st_mtime_ns
    folder = _temporary_folder(account, _digest(f"programs {postgres.root} {valkey} {stamp}"))
    copied_postgres, copied_valkey = copy_programs(postgres, valkey, folder / "programs")
    if not (account.may_run(copied_postgres.initdb) and account.may_run(copied_valkey)):
        raise ConfigError(
            f"account {UNPRIVILEGED!r} can run the servers neither from {postgres.root} "
            f"nor from {folder}",
            next_step=f"install ackbox where everyone may read it, or {USE_OWN_SERVERS}",
        )
    return replace(place, postgres=copied_postgres, valkey=copied_valkey)


def _temporary_folder(account: ServerAccount, key: str) -> Path:
    """Make a folder of ours under a temporary root that the servers' account can reach."""
    for root in _temporary_roots():
        folder = _own_folder(root / f"ackbox-{os.geteuid()}-{key}")
        if account.may_enter(folder):
            return folder
    raise ConfigError(
        "no folder was found that the account of the embedded servers can reach",
        next_step=f"set ACKBOX_DATA_DIR to a folder that everyone may enter, or {USE_OWN_SERVERS}",
    )


def _temporary_roots() -> Iterator[Path]:
    seen = dict.fromkeys([tempfile.gettempdir(), "/tmp", "/var/tmp"])
    return (Path(root) for root in seen if os.path.isdir(root))


def _own_folder(folder: Path) -> Path:
    """Make a folder, or take one that is ours: a name under /tmp can be someone else's trap."""
    try:
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)
    except FileExistsError:
        found = folder.lstat()
        is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        if not is_ours or found.st_mode & 0o022:
            raise ConfigError(
                f"{folder} exists but is not a folder that only this account may write",
                next_step=f"remove it, or {USE_OWN_SERVERS}",
            ) from None
    return folder


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
