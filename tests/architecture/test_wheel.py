"""What a user installs: every module of ours under `ackbox`, and no other name at the top level."""

import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

SHIPPED_SUFFIXES = {".py", ".sql", ".mako", ".typed"}


def build_wheel(checkout: Path, target: Path) -> set[str]:
    """Build an sdist, and from it a wheel; return the names of the files in the wheel."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target)]
    done = subprocess.run(
        command, cwd=checkout, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (wheel,) = target.glob("ackbox-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def expected_files(package_folders: list[Path]) -> set[str]:
    """Return the wheel's path of each file in the packages that has to be shipped."""
    return {
        (PurePosixPath("ackbox", folder.name) / path.relative_to(folder).as_posix()).as_posix()
        for folder in package_folders
        for path in folder.rglob("*")
        if path.suffix in SHIPPED_SUFFIXES
    }


def top_level_names(files: set[str]) -> set[str]:
    """Return what an installation would add to site-packages, its own metadata aside."""
    names = {PurePosixPath(name).parts[0] for name in files}
    return {name for name in names if not name.endswith(".dist-info")}


def test_wheel_holds_every_module_and_nothing_else_on_top(
    copied_checkout: Path, package_folders: list[Path], tmp_path: Path
) -> None:
    """Modules, SQL, migrations and type markers are shipped; only `ackbox` is installed."""
    # Planted, so that a data file of each kind is looked for even before the first real one exists.
    planted = ["outbox/sql/planted.sql", "outbox/migrations/planted.mako"]
    for name in planted:
        (copied_checkout / name).parent.mkdir(exist_ok=True)
        (copied_checkout / name).write_text("-- planted\n")
    expected = expected_files([copied_checkout / folder.name for folder in package_folders])
    assert {f"ackbox/{name}" for name in planted} <= expected
    assert {f"ackbox/{folder.name}/py.typed" for folder in package_folders} <= expected
    files = build_wheel(copied_checkout, tmp_path / "dist")
    assert not expected - files
    assert {"ackbox/__init__.py", "ackbox/py.typed"} <= files
    assert {f"ackbox/testing/{name}.py" for name in ("__init__", "pytest_plugin")} <= files
    assert top_level_names(files) == {"ackbox"}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in files)


def test_links_that_became_text_files_are_noticed(
    copied_checkout: Path, package_folders: list[Path], tmp_path: Path
) -> None:
    """A clone without symbolic links builds a wheel that lacks the packages; the check sees it."""
    for folder in package_folders:
        link = copied_checkout / "src" / "ackbox" / folder.name
        link.unlink()
        link.write_text(f"../../{folder.name}")
    files = build_wheel(copied_checkout, tmp_path / "dist")
    assert expected_files(package_folders) - files


def test_links_are_relative_and_lead_to_folders_of_this_checkout(repository_root: Path) -> None:
    """A clone anywhere resolves each package to its own real folder."""
    for link in (repository_root / "src" / "ackbox").iterdir():
        if link.is_symlink():
            assert link.readlink() == Path("..", "..", link.name)
            assert (repository_root / link.name / "py.typed").is_file()


def packages_loaded_by_bare_name(checkout: Path, names: list[str]) -> list[str]:
    """Import each package by its bare name from the checkout's root; return those that loaded."""
    script = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n"
        "        importlib.import_module(name)\n"
        "    except ImportError:\n"
        "        continue\n"
        "    print(name)\n"
    )
    command = [sys.executable, "-c", script, *names]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_no_package_loads_by_its_bare_name(
    repository_root: Path, package_folders: list[Path]
) -> None:
    """From the root of the repository, `import planner` fails instead of loading a second copy."""
    names = [folder.name for folder in package_folders]
    assert packages_loaded_by_bare_name(repository_root, names) == []


def test_a_package_without_its_guard_is_noticed(copied_checkout: Path) -> None:
    """The check above fails once a package's `__init__` lets its bare name pass."""
    (copied_checkout / "planner" / "__init__.py").write_text('"""Unguarded."""\n')
    assert packages_loaded_by_bare_name(copied_checkout, ["outbox", "planner"]) == ["planner"]
