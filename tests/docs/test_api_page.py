"""The reference of the public names is complete, and says what the source says now."""

import importlib
from pathlib import Path

import pytest

from ackbox.app.reference.__main__ import main
from ackbox.app.reference.public import PUBLIC_MODULES, Public, find, names_of
from ackbox.app.reference.render import missing, missing_of, page

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "api.md"
PLANTED = '''
from typing import overload

__all__ = ["Planted", "bare", "doubled", "told"]

class Planted:
    """Said."""

    seconds: float = 1.0
    """How long."""

    def __init__(self, size) -> None: ...

    @property
    def open(self) -> bool:
        """Whether."""

    def silent(self) -> None: ...

    def _hidden(self): ...

def bare(a, *, b: int = 2): ...

@overload
def doubled(a: int) -> int: ...
@overload
def doubled(a: str) -> str: ...
def doubled(a: object) -> object:
    """Twice."""

told = 1
"""A value."""
'''


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module that lacks things."""
    (tmp_path / "planted_names.py").write_text(PLANTED)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "planted_names"


def test_the_page_is_up_to_date(tmp_path: Path) -> None:
    """Property: the page is what its generator writes; the check sees another text."""
    assert main(["--check", str(PAGE)]) == 0, (
        "run: python -m ackbox.app.reference --write docs/reference/api.md"
    )
    (tmp_path / "old.md").write_text("old")
    assert main(["--check", str(tmp_path / "old.md")]) == 1
    assert main(["--write", str(tmp_path / "new.md")]) == 0
    assert (tmp_path / "new.md").read_text() == PAGE.read_text(encoding="utf-8")


def test_every_public_name_has_docstring_type_and_line() -> None:
    """Property: nothing that `__all__` names, and no public method of it, lacks one of them."""
    assert missing() == []
    headings = PAGE.read_text(encoding="utf-8").splitlines()
    for module in PUBLIC_MODULES:
        assert f"## {module}" in headings
        assert names_of(module)
        for name in names_of(module):
            assert f"### {name}" in headings


def test_every_public_module_stands_on_the_page() -> None:
    """Property: a module beside `ackbox/__init__.py` is public, so it must be listed."""
    face = ROOT / "src" / "ackbox"
    folders = [face, *(one for one in face.iterdir() if one.is_dir() and not one.is_symlink())]
    files = [file for folder in folders for file in folder.glob("*.py")]
    names = {".".join(("ackbox", *file.relative_to(face).with_suffix("").parts)) for file in files}
    modules = {name.removesuffix(".__init__") for name in names} - {"ackbox.__main__"}
    assert modules == set(PUBLIC_MODULES)


def test_the_names_of_the_page_can_be_imported() -> None:
    """Property: what the reader of the source finds is what an import gives."""
    for module in PUBLIC_MODULES:
        loaded = importlib.import_module(module)
        for name in names_of(module):
            assert hasattr(loaded, name)
            assert find(module, name).node is not None


def test_what_is_missing_is_seen(planted: str) -> None:
    """Property: a missing docstring, parameter's type and return type are each reported."""
    assert missing([planted]) == [
        "planted_names.Planted: no type of size",
        "planted_names.Planted.silent: no docstring",
        "planted_names.bare: no docstring",
        "planted_names.bare: no type of a",
        "planted_names.bare: no type of what it returns",
    ]


def test_a_name_is_shown_as_it_is_written(planted: str) -> None:
    """Property: parameters, properties, attributes, overloads stand on the page, `_` does not."""
    text = page([planted])
    for shown in (
        "Planted(size)", "seconds: float = 1.0", "How long.", "open: bool", "def silent() -> ",
        "def bare(a, *, b: int = 2)", "def doubled(a: str) -> str", "Twice.", "told = 1", "A value"
    ):  # fmt: skip
        assert shown in text
    assert "_hidden" not in text
    assert "object" not in text


def test_an_alias_without_documentation_is_missed(planted: str) -> None:
    """Property: a value needs the text below it."""
    found = find(planted, "told")
    assert missing_of("there.told", found) == []
    assert missing_of("there.told", Public("told", found.node, "")) == ["there.told: no docstring"]
