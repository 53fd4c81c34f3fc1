"""compose.yaml and the Dockerfile: every role, checked health, public images that can be changed.

The files are read as text here, since reading YAML needs a library that nothing else needs; where
Compose itself is at hand it is asked as well.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ackbox.app.cli.options import ROLES
from ackbox.app.settings import PREFIX, names
from ackbox.app.supervisor import ROLES as SUPERVISED

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = (ROOT / "compose.yaml").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
GRACE_SECONDS = 35


def blocks(text: str, indent: int) -> dict[str, str]:
    """Return the mapping at this indentation as texts, by key."""
    lines = re.split(rf"^{' ' * indent}([a-z][\w-]*):(?= |$)", text, flags=re.MULTILINE)
    return dict(zip(lines[1::2], lines[2::2], strict=True))


TOP = blocks(COMPOSE, 0)
SERVICES = blocks(TOP["services"], 2)


def test_each_role_is_a_service_with_its_command() -> None:
    """The services are the two servers, the migration and the roles that `up` knows."""
    assert set(SERVICES) == {"postgres", "redis", "migrate", *ROLES}
    assert set(ROLES) == set(SUPERVISED)
    for role in ROLES:
        assert re.search(rf"command: \[{role}[,\]]", SERVICES[role])


def test_each_service_that_runs_on_is_health_checked() -> None:
    """A role is asked whether it beats from its own container; the servers by their own tools."""
    for name in (*ROLES, "postgres", "redis"):
        assert "healthcheck:" in SERVICES[name]
    for role in ROLES:
        assert f"test: [CMD, ackbox, doctor, --here, {role}]" in SERVICES[role]


def test_roles_start_after_the_schema_and_redis() -> None:
    """Nothing starts on a database without the schema, and only one service migrates."""
    assert "migrate:\n      condition: service_completed_successfully" in TOP["x-ackbox"]
    assert "redis:\n      condition: service_healthy" in TOP["x-ackbox"]
    assert "postgres:\n        condition: service_healthy" in SERVICES["migrate"]
    assert 'restart: "no"' in SERVICES["migrate"]


def test_redis_neither_evicts_nor_forgets() -> None:
    """Tokens may be lost without harm; losing none is cheaper."""
    assert '--appendonly, "yes"' in SERVICES["redis"]
    assert "--maxmemory-policy, noeviction" in SERVICES["redis"]


def test_images_are_variables_with_public_defaults() -> None:
    """The same files run with stand-ins, and with nothing set as well."""
    images = re.findall(r"(?:image|PYTHON_IMAGE): (\S+)", COMPOSE)
    assert len(images) == 4
    for image in images:
        assert re.fullmatch(r"\$\{[A-Z_]+:-[a-z]+:[\w.-]+\}", image), image
    assert re.search(r"^ARG PYTHON_IMAGE=python:[\w.-]+$", DOCKERFILE, re.MULTILINE)
    assert re.search(r"^FROM \$\{PYTHON_IMAGE\}$", DOCKERFILE, re.MULTILINE)


def test_every_variable_of_ours_is_a_setting() -> None:
    """What the services are given by the environment is read by something."""
    known = {PREFIX + name.upper() for name in names()}
    given = set(re.findall(r"^    (ACKBOX_[A-Z_]+):", TOP["x-ackbox"], re.MULTILINE))
    assert given
    assert given <= known


def test_a_stop_leaves_time_for_what_is_on_the_wire() -> None:
    """A worker's container is given longer than its own grace, and gets SIGTERM itself."""
    found = re.search(r"stop_grace_period: (\d+)s", SERVICES["worker"])
    assert found is not None
    assert int(found[1]) > GRACE_SECONDS + 5
    assert 'ENTRYPOINT ["ackbox"]' in DOCKERFILE


def test_nothing_runs_as_root_or_names_a_host_path() -> None:
    """The image has an account of its own; mounts are relative or named."""
    assert re.search(r"^USER ackbox$", DOCKERFILE, re.MULTILINE)
    for mount in re.findall(r"^\s+- (\S+:/\S+)$", COMPOSE, re.MULTILINE):
        assert not mount.startswith("/")


@pytest.mark.container
def test_compose_accepts_the_file() -> None:
    """Compose itself reads it, and asks for the one thing that has no default."""
    command = shutil.which("docker-compose") or pytest.skip("docker-compose is not installed")
    bare = {k: v for k, v in os.environ.items() if not k.startswith("ACKBOX_")}
    ask = [command, "-f", str(ROOT / "compose.yaml"), "config", "--quiet"]
    missing = subprocess.run(ask, env=bare, capture_output=True, text=True, timeout=60)
    assert missing.returncode != 0
    assert "name a module with tools" in missing.stderr
    named = {**bare, "ACKBOX_TOOLS": "my_tools"}
    found = subprocess.run(ask, env=named, capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr
