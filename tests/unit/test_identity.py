"""Names and digests: deterministic ids, wire keys that never meet, arguments that stay as given."""

import hashlib
import json
import subprocess
import sys
import uuid
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackbox.outbox.errors import InvalidIntent
from ackbox.outbox.identity import (
    SAFE_INTEGER,
    canonical,
    check_identity,
    fingerprint,
    is_derived,
    mint_intent_id,
    undo_id,
    wire_key,
)
from ackbox.outbox.intent import Address, Terms, address_of, content_of, draft_of

NAMES = st.text("abcXYZ019._:-", min_size=1, max_size=20)
LIMIT = 2**20
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-SAFE_INTEGER, SAFE_INTEGER)
    | st.floats(-1e15, 1e15)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(NAMES, NAMES, NAMES)
def test_minted_ids_are_deterministic_uuids(namespace: str, run_id: str, step: str) -> None:
    """The same names give the same version-4 UUID, in another process as well as here."""
    minted = mint_intent_id(namespace, run_id, step)
    assert minted == mint_intent_id(namespace, run_id, step)
    assert uuid.UUID(minted).version == 4
    assert minted == minted.lower()
    check_identity("default", minted)


def test_minted_ids_never_change() -> None:
    """The id is part of what providers store: another release must mint the same one."""
    digest = hashlib.sha256(b'["default","r1","open-ticket"]').digest()[:16]
    expected = str(uuid.UUID(bytes=digest, version=4))
    assert mint_intent_id("default", "r1", "open-ticket") == expected


@given(NAMES, NAMES, NAMES, NAMES)
def test_names_do_not_run_into_each_other(one: str, two: str, three: str, four: str) -> None:
    """(run, step) pairs that differ have ids that differ, however their texts join."""
    if (one, two) != (three, four):
        assert mint_intent_id("n", one, two) != mint_intent_id("n", three, four)


@given(st.tuples(NAMES, NAMES, st.integers(0, 30)), st.tuples(NAMES, NAMES, st.integers(0, 30)))
def test_wire_keys_never_meet(one: tuple[str, str, int], other: tuple[str, str, int]) -> None:
    """Namespace, id and generation can be told from the key, undo ids included."""
    keys = {wire_key(*one), wire_key(*other), wire_key(one[0], undo_id(one[1], 0), one[2])}
    assert len(keys) == len({one, other}) + 1


def test_wire_key_forms() -> None:
    """A default key of generation 0 is the id itself; a default key never begins with `~`."""
    assert wire_key("default", "i", 0) == "i"
    assert wire_key("default", "i", 2) == "i~g2"
    assert wire_key("acme", "i", 1) == "~acme~i~g1"
    assert wire_key("default", undo_id("i", 0), 1) == "i~undo0~g1"
    assert is_derived("i~undo0")
    assert not is_derived("i~g1")


@given(JSON)
def test_canonical_keeps_the_value(value: Any) -> None:
    """What is legal comes back from its canonical form as it was."""
    assert json.loads(canonical(value, LIMIT)) == value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (float("nan"), "args"),
        ([float("-inf")], "args[0]"),
        ({"a": {"b": [1, 2**53]}}, "args.a.b[1]"),
        ({"a": 1e300}, "args.a"),
        ({"a": "\x00"}, "args.a"),
        ({"a": ["\udfff"]}, "args.a[0]"),
        ({"a\x00": 1}, "args"),
        ({1: 2}, "args"),
        ({"a": {1, 2}}, "args.a"),
        ({"a": b"x"}, "args.a"),
    ],
)
def test_what_would_change_on_the_way_is_refused(value: Any, path: str) -> None:
    """The message begins with the value's path and shows nothing of the value."""
    with pytest.raises(InvalidIntent) as error:
        canonical(value, LIMIT)
    assert error.value.what.split(":")[0].split(" ")[0] == path


def test_deep_nesting_and_great_size_are_refused() -> None:
    """A reader recurses and a row has a limit: both are refused before anything is stored."""
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    with pytest.raises(InvalidIntent, match="nested deeper"):
        canonical(deep, LIMIT)
    with pytest.raises(InvalidIntent, match="limit is 1048576"):
        canonical({"a": "x" * LIMIT}, LIMIT)


def test_the_fingerprint_is_of_tool_and_arguments() -> None:
    """Key order and integral floats do not matter; the tool, and every value, does."""
    base = fingerprint("t", {"a": 1, "b": [1.0]}, LIMIT)
    assert base == fingerprint("t", {"b": [1], "a": 1}, LIMIT)
    others: list[tuple[str, Any]] = [
        ("u", {"a": 1, "b": [1]}),
        ("t", {"a": 1, "b": ["1"]}),
        ("t", {"a": 1}),
    ]
    assert base not in {fingerprint(tool, args, LIMIT) for tool, args in others}


def test_defaults_change_the_content_and_not_the_fingerprint() -> None:
    """`put` compares what the caller gave; adopt compares what is stored too."""
    plain = content_of("t", 1, "default", {"a": 1})
    with_default = content_of("t", 1, "default", {"a": 1}, {"b": 2})
    spelled_out = content_of("t", 1, "default", {"a": 1, "b": 2})
    assert plain.fingerprint == with_default.fingerprint == plain.content
    assert with_default.content == spelled_out.content != plain.content
    assert with_default.args == {"a": 1, "b": 2}


def test_what_is_stored_is_what_the_digests_were_taken_of() -> None:
    """A caller that changes its arguments after the draft changes nothing of the draft."""
    args: dict[str, Any] = {"lines": [{"cents": 1, "share": 1.0}]}
    content = content_of("t", 1, "default", args)
    args["lines"][0]["cents"] = 2
    assert content.args == {"lines": [{"cents": 1, "share": 1.0}]}
    assert fingerprint("t", content.args, LIMIT) == content.fingerprint
    assert isinstance(content.args["lines"][0]["share"], float)


def test_a_mapping_that_is_no_dict_is_refused_inside_of_arguments() -> None:
    """Nothing here stores one; as the whole of the arguments it is read like a dict."""
    assert content_of("t", 1, "default", MappingProxyType({"a": 1})).args == {"a": 1}
    with pytest.raises(InvalidIntent, match=r"args\.a: mappingproxy is not a JSON type"):
        content_of("t", 1, "default", {"a": MappingProxyType({})})


def test_an_intent_is_named_in_one_way() -> None:
    """Either run and step, or the id; a derived id can be asked about and never put."""
    content = content_of("t", 1, "default", {})
    minted = draft_of(content, Terms(), run_id="r", step="a:b")
    assert minted.intent_id == mint_intent_id("default", "r", "a:b")
    assert address_of(("r", "a:b")) == Address("default", minted.intent_id)
    assert address_of("x~undo0") == Address("default", "x~undo0")
    for names in ({}, {"run_id": "r"}, {"run_id": "r", "step": "s", "intent_id": "i"}):
        with pytest.raises(InvalidIntent):
            draft_of(content, Terms(), **names)
    with pytest.raises(InvalidIntent, match="colon"):
        draft_of(content, Terms(), run_id="a:b", step="s")
    with pytest.raises(InvalidIntent):
        draft_of(content, Terms(), intent_id="x~undo0")
    with pytest.raises(InvalidIntent, match="longer than"):
        draft_of(content, Terms(), intent_id="x" * 194)


def test_importing_ackbox_imports_nothing_else() -> None:
    """The face is lazy: no driver, no queue, no thread; and it holds what it names."""
    script = (
        "import sys, threading; before = set(sys.modules); import ackbox;"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "assert not new & {'sqlalchemy', 'psycopg', 'redis', 'rq', 'structlog'}, new;"
        "assert threading.active_count() == 1;"
        "assert all(getattr(ackbox, name) is not None for name in ackbox.__all__);"
        "assert set(ackbox.__all__) <= set(dir(ackbox));"
        "assert not {'redis', 'rq', 'alembic', 'httpx2'} & set(sys.modules);"
        "from ackbox import Planner, tool, Committed"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_depth_counts_levels_and_not_dots_in_names() -> None:
    """A flat object with a dotted name is stored; a tower of objects is refused, not recursed."""
    assert canonical({"a." * 100: 1}, 10_000)
    tower: Any = 1
    for _ in range(200):
        tower = {"a": tower}
    with pytest.raises(InvalidIntent, match="nested"):
        canonical(tower, 10_000)
