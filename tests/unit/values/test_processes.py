"""The fingerprint is the same in every process: hash seeds, Python versions, locales, JavaScript.

`fingerprints.json` holds vectors whose digests come from ECMAScript's own JSON, the form that the
standard is written after. A second producer of intents has to pass them too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from ackbox.outbox.identity import fingerprint

HERE = Path(__file__).parent
SOURCES = Path(__file__).parents[3] / "src"
VECTORS = json.loads((HERE / "fingerprints.json").read_text(encoding="utf-8"))
VERSIONS = ("3.11", "3.12", "3.13", "3.14")

PROGRAM = """
import datetime as dt, decimal, enum, json, sys, uuid
from dataclasses import dataclass, field
from ackbox import tool
from ackbox.outbox.identity import fingerprint

class Level(enum.Enum):
    HIGH = "high"

@dataclass
class Line:
    price: decimal.Decimal
    tags: set[str] = field(default_factory=set)

@tool("t")
def take(call, *, line: Line, seen: frozenset[uuid.UUID], at: dt.datetime, took: dt.timedelta,
         level: Level, raw: bytes, days: set[dt.date], numbers: dict[str, float]): ...

zone = dt.timezone(dt.timedelta(hours=5, minutes=30))
draft = take.intent(
    line=Line(decimal.Decimal("0.10"), {f"tag {n} \\u00e9" for n in range(40)}),
    seen=frozenset(uuid.UUID(int=n) for n in range(40)),
    at=dt.datetime(2026, 3, 29, 2, 30, 0, 7, tzinfo=zone), took=dt.timedelta(-1, 5, 7),
    level=Level.HIGH, raw=bytes(range(256)),
    days={dt.date(2026, 1, day) for day in range(1, 29)},
    numbers={"\\ufb33": 1e-7, "\\U0001f600": 5.0},
)
vectors = json.load(open(sys.argv[1], encoding="utf-8"))
digests = [fingerprint(one["tool"], one["args"], 2**20) for one in vectors]
digests.append(fingerprint("t", {**draft.args, **draft.defaults}, 2**20))
assert "pydantic" not in sys.modules and "sqlalchemy" not in sys.modules
print(json.dumps(digests))
"""


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["says"])
def test_vectors(vector: Any) -> None:
    """One digest for tool and arguments, wherever it is computed."""
    assert fingerprint(vector["tool"], vector["args"], 2**20) == vector["fingerprint"]


@cache
def digests(executable: str, folder: Path, hash_seed: str, **environment: str) -> list[str]:
    """Return what another process computes: the vectors, then a draft of many types."""
    done = subprocess.run(
        [executable, "-c", PROGRAM, str(HERE / "fingerprints.json")],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{SOURCES}{os.pathsep}{folder}",
            "PYTHONHASHSEED": hash_seed,
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the one dependency that the pure modules have."""
    found = tmp_path_factory.mktemp("dependency")
    shutil.copytree(Path(rfc8785.__file__).parent, found / "rfc8785")
    return found


@pytest.fixture(scope="module")
def expected(folder: Path) -> list[str]:
    """Return what this Python computes with one hash seed."""
    return digests(sys.executable, folder, "0")


def test_hash_seeds_and_locales(expected: list[str], folder: Path) -> None:
    """Neither the order of sets nor the platform's encoding is in it."""
    assert expected[:-1] == [vector["fingerprint"] for vector in VECTORS]
    for seed in ("1", "2", "4294967295"):
        assert digests(sys.executable, folder, seed) == expected
    assert digests(sys.executable, folder, "3", LC_ALL="C", PYTHONUTF8="0", TZ="Asia/Kolkata") == (
        expected
    )


def installed(version: str) -> str | None:
    """Return a Python of that version, from the path or from pyenv; None where none runs."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *map(str, pyenv.glob(f"{version}.*/bin/python"))]
    return next((one for one in found if one and is_version(one, version)), None)


def is_version(executable: str, version: str) -> bool:
    """Return whether an executable runs, and is a Python of that version."""
    asked = [executable, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=False)
    return done.stdout.strip() == version


@pytest.mark.parametrize("version", VERSIONS)
def test_python_versions(version: str, expected: list[str], folder: Path) -> None:
    """Of those that are installed: the same text for every type."""
    executable = installed(version)
    if executable is None:
        pytest.skip(f"no Python {version} is installed")
    assert digests(executable, folder, "7") == expected
