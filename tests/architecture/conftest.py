"""Where the checkout is, and a throw-away copy of it to plant violations in."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What a build and the import contracts need; never the environment or run-time data.
COPIED = ("pyproject.toml", "README.md", "LICENSE", "src")


@pytest.fixture(scope="session")
def repository_root() -> Path:
    """Return the root folder of this checkout."""
    return ROOT


@pytest.fixture(scope="session")
def package_folders(repository_root: Path) -> list[Path]:
    """Return the real folder of every package, read from the links under src/ackbox."""
    links = sorted(p for p in (repository_root / "src" / "ackbox").iterdir() if p.is_symlink())
    return [link.resolve() for link in links]


@pytest.fixture
def copied_checkout(tmp_path: Path, repository_root: Path, package_folders: list[Path]) -> Path:
    """Return a copy of the sources (links kept as links) that a test may damage."""
    target = tmp_path / "checkout"
    target.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for source in [*(repository_root / name for name in COPIED), *package_folders]:
        if source.is_dir():
            shutil.copytree(source, target / source.name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(source, target / source.name)
    return target
