"""The reference page names every type that has a rule of its own."""

import re
from pathlib import Path
from typing import Any

import pytest

from ackbox.tool_adapters.values import annotations, texts

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "arguments.md"


def named_types() -> set[str]:
    """Return the names of the types with a rule."""
    kinds: list[Any] = [*texts.TEXT_RULES, *annotations._SETS, *annotations._MAPPINGS, list, tuple]
    scalars = [one for one in annotations._SCALARS if one not in (None, type(None))]
    names = {one.__name__ for one in [*kinds, *scalars]}
    return {*names, "BigInt", "Enum", "Literal", "BaseModel", "SecretStr", "Annotated"}


def explained(text: str) -> set[str]:
    """Return the names in the first column of the table of types."""
    cells = re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE)
    return {word for cell in cells for word in re.findall(r"`(\w+)`", cell)}


def test_every_type_is_on_the_page() -> None:
    """One documented rule for each; those that only change while they run have their base's."""
    changing = {"MutableSet", "MutableMapping"}
    assert not named_types() - changing - explained(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["Decimal", "frozenset", "Any"])
def test_a_missing_type_is_seen(name: str) -> None:
    """The comparison can fail."""
    text = PAGE.read_text(encoding="utf-8").replace(f"`{name}`", "`other`")
    assert name in named_types() - explained(text)
