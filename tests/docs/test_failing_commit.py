"""The handler of the page about 202: a commit that fails gives no 202, by that page's own code."""

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, create_engine, text

from .pages import blocks

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "howto" / "answer-202.md"
SAFE = ', scope="function"'
ADA = {"Authorization": "Bearer token-of-ada"}
FAIL_AT_COMMIT = (
    "CREATE TABLE refunds (id text PRIMARY KEY, cents bigint)",
    "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN RAISE EXCEPTION 'too much'; END $$",
    "CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON refunds DEFERRABLE INITIALLY DEFERRED"
    " FOR EACH ROW WHEN (NEW.cents > 1000) EXECUTE FUNCTION fail()",
)
"""A constraint of the application that Postgres checks at COMMIT, and no sooner."""


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """Give an engine on a database in which large refunds fail at their commit."""
    engine = create_engine(database_url)
    with engine.begin() as connection:
        for statement in FAIL_AT_COMMIT:
            connection.execute(text(statement))
    yield engine
    engine.dispose()


@pytest.fixture
def folder(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder with the page's files in it, on the path of modules."""
    for name in [name for name in os.environ if name.startswith("ACKBOX_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ACKBOX_DATABASE_URL", database_url)
    monkeypatch.syspath_prepend(str(tmp_path))
    for block in blocks(PAGE, ROOT):
        if block.what == "file":
            (tmp_path / block.value).write_text(block.text, encoding="utf-8")
    yield tmp_path
    for name in ("shop", "shop_tools"):
        sys.modules.pop(name, None)


def status_of_refund(cents: int) -> int:
    """Ask the application in the folder for a refund, and return the status of its answer."""
    importlib.invalidate_caches()
    shop = importlib.import_module("shop")
    with TestClient(shop.app, raise_server_exceptions=False) as client:
        return client.post("/orders/o-1/refund", json={"cents": cents}, headers=ADA).status_code


def stored(engine: Engine) -> int:
    """Return how many intents are stored."""
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM ackbox.intent")).scalar_one())


def test_a_commit_that_holds_gives_202(folder: Path, engine: Engine) -> None:
    """Property: the page's application accepts, and what it accepted is stored."""
    assert status_of_refund(700) == 202
    assert stored(engine) == 1


def test_a_commit_that_fails_gives_no_202(folder: Path, engine: Engine) -> None:
    """Property: where the transaction fails at its COMMIT, the client is not told *accepted*."""
    assert status_of_refund(5000) == 500
    assert stored(engine) == 0


def test_without_the_scope_the_client_is_told_a_lie(folder: Path, engine: Engine) -> None:
    """Property: the test above can fail: FastAPI's default answers first and commits second."""
    shop = folder / "shop.py"
    code = shop.read_text(encoding="utf-8")
    assert code.count(SAFE) == 1
    shop.write_text(code.replace(SAFE, ""), encoding="utf-8")
    assert status_of_refund(5000) == 202
    assert stored(engine) == 0
