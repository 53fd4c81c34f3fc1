"""Under which operating-system account the embedded servers run.

PostgreSQL refuses to run as root, so root starts the servers as an unprivileged account; anyone
else starts them as himself. Nothing but our own folders ever changes owner, and no folder
above them changes its permissions. May import the standard library and `outbox.errors`.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...outbox.errors import ConfigError
from .binaries import USE_OWN_SERVERS

UNPRIVILEGED = "nobody"
_PLAIN_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True)
class ServerAccount:
    """The account of the servers. `uid` None means the account of this process."""

    uid: int | None = None
    gid: int | None = None

    @property
    def is_other(self) -> bool:
        """Say whether the servers run under another account than this process."""
        return self.uid is not None

    def give(self, path: Path) -> None:
        """Make one of our own files or folders belong to the servers' account."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)

    def run(self, command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        """Run a short program to its end; raises OSError where it cannot be started."""
        return subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            **self._process_options(),
        )

    def spawn(
        self, command: Sequence[str | Path], *, log: Path, kept_open: int
    ) -> subprocess.Popen[bytes]:
        """Start a server in its own session, so that Ctrl-C reaches its owner only.

        The server inherits the file descriptor `kept_open` and holds its lock while it lives.
        """
        with log.open("ab") as output:
            return subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(kept_open,),
                **self._process_options(),
            )

    def may_run(self, program: Path) -> bool:
        """Try whether the account can execute a program (all folders above it included)."""
        try:
            return self.run([program, "--version"]).returncode == 0
        except OSError:
            return False

    def may_enter(self, folder: Path) -> bool:
        """Try whether the account reaches a folder."""
        return self._shell_agrees('cd "$1"', folder)

    def may_write(self, folder: Path) -> bool:
        """Try whether the account reaches a folder and may write into it."""
        return self._shell_agrees('cd "$1" && test -w .', folder)

    def _shell_agrees(self, script: str, folder: Path) -> bool:
        try:
            return self.run(["/bin/sh", "-c", script, "sh", folder]).returncode == 0
        except OSError:
            return False

    def _process_options(self) -> Mapping[str, Any]:
        options: dict[str, Any] = {"cwd": "/", "env": _PLAIN_ENVIRONMENT, "umask": 0o077}
        if self.is_other:
            options |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        return options


def choose_account() -> ServerAccount:
    """Choose the servers' account: this process's own, or an unprivileged one for root."""
    if os.geteuid() != 0:
        return ServerAccount()
    try:
        entry = pwd.getpwnam(UNPRIVILEGED)
    except KeyError:
        raise _no_account(f"there is no account {UNPRIVILEGED!r}") from None
    account = ServerAccount(entry.pw_uid, entry.pw_gid)
    try:
        account.run(["/bin/sh", "-c", ":"])
    except OSError as error:
        raise _no_account(f"root may not switch to {UNPRIVILEGED!r}: {error.strerror}") from None
    return account


def _no_account(reason: str) -> ConfigError:
    return ConfigError(
        f"PostgreSQL refuses to run as root, and {reason}",
        next_step=f"start ackbox as an ordinary user, or {USE_OWN_SERVERS}",
    )
