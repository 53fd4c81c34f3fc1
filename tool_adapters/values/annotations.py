"""From an annotation to its rule: the one table of what a signature may say.

Decides which types tools may take and return. Pure. Whatever is not named here is asked of
pydantic, and refused where pydantic knows nothing either.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin

from . import containers, scalars, texts
from .choices import UnionRule, enum_rule, literal_rule
from .json_schema import Definitions
from .models import ConstrainedRule, ModelRule, PydanticRule, is_model, type_adapter
from .place import Misfit, Place, Rule, RuleFor, Schema, named, no_rule
from .records import DataclassRule, NamedTupleRule, TypedDictRule


@dataclasses.dataclass(frozen=True, slots=True)
class AsText:
    """Marks a whole number that is stored as text, so that it may have any size."""

    stored_as_text: bool = True

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Return the schema of the text, which pydantic asks for."""
        return dict(texts.TEXT_SCHEMAS["int"])


BigInt: TypeAlias = Annotated[int, AsText()]
"""A whole number of any size, stored as text: beyond 2**53 JSON numbers lose digits."""

_SCALARS: dict[Any, Callable[[], Rule]] = {
    None: scalars.NoneRule,
    type(None): scalars.NoneRule,
    bool: scalars.BoolRule,
    int: scalars.IntRule,
    float: scalars.FloatRule,
    str: scalars.StrRule,
    Any: scalars.JsonRule,
    object: scalars.JsonRule,
}
_SEQUENCES = (collections.abc.Sequence, collections.abc.Collection, collections.abc.Iterable)
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_SETS: dict[Any, tuple[type, Any]] = {
    set: (set, set),
    frozenset: (frozenset, frozenset),
    collections.abc.Set: (frozenset, collections.abc.Set),
    collections.abc.MutableSet: (set, set),
}
_QUALIFIERS = {
    getattr(typing, name) for name in ("Required", "NotRequired", "ReadOnly", "Final", "ClassVar")
    if hasattr(typing, name)
}  # fmt: skip
_ALIASES: tuple[Any, ...] = (
    (getattr(typing, "TypeAliasType"),) if hasattr(typing, "TypeAliasType") else ()  # noqa: B009
)
_CONSTRAINING = ("pydantic", "pydantic_core", "annotated_types")


def rule_for(annotation: Any) -> Rule:
    """Return the rule of an annotation.

    Raises NoRule for a type whose values nothing here can store.
    """
    return _Rules({}, {}).of(annotation)


@dataclasses.dataclass(frozen=True, slots=True)
class _Rules:
    """Rules for the parts of one signature. A class has one, however often it is met inside itself.

    `given` are the arguments of a generic class's variables.
    """

    given: Mapping[Any, Any]
    made: dict[tuple[Any, str], Rule]

    def of(self, annotation: Any) -> Rule:
        """Return the rule of a part. Raises NoRule."""
        if isinstance(annotation, TypeVar):
            return _Rules({}, self.made).of(self.given.get(annotation, Any))
        origin = get_origin(annotation)
        if origin is None:
            return _plain(annotation, self)
        variables = getattr(annotation, "__parameters__", ())
        if variables:
            annotation = annotation[tuple(self.given.get(one, Any) for one in variables)]
        return _parametrised(annotation, origin, self)

    def once(self, annotation: Any, make: Callable[[RuleFor], Rule | None]) -> Rule | None:
        """Return the one rule of a class, whose own parts know of no variables but its own."""
        # The text tells apart what Python calls equal: unions whose types stand in another order.
        known = annotation if _hashable(annotation) else get_origin(annotation)
        key = (known, repr(annotation))
        if key not in self.made:
            origin = get_origin(annotation) or annotation
            variables = getattr(origin, "__parameters__", ())
            given = dict(zip(variables, get_args(annotation), strict=False))
            rule = make(_Rules(given, self.made).of)
            if rule is None:
                return None
            self.made[key] = rule
        return self.made[key]


def _plain(annotation: Any, rules: _Rules) -> Rule:
    if _hashable(annotation) and annotation in _SCALARS:
        return _SCALARS[annotation]()
    if isinstance(annotation, _ALIASES):
        return _Later(named(annotation), lambda: rules.of(annotation.__value__))
    if isinstance(annotation, type):
        rule = _class_rule(annotation, rules)
        if rule is not None:
            return rule
    if (supertype := getattr(annotation, "__supertype__", None)) is not None:
        return rules.of(supertype)
    return PydanticRule(annotation, type_adapter(annotation))


def _class_rule(kind: type[Any], rules: _Rules) -> Rule | None:
    if kind in texts.TEXT_RULES:
        return texts.TEXT_RULES[kind]
    if scalars.is_secret(kind):
        return scalars.SecretRule()
    if issubclass(kind, Enum):
        return _enum(kind)
    if kind in (list, tuple, *_SEQUENCES, *_MAPPINGS) or kind in _SETS:
        return _container(kind, (), rules.of)
    if is_model(kind):
        return rules.once(kind, lambda again: ModelRule(kind, again))
    return rules.once(kind, lambda again: _record(kind, again))


def _record(kind: Any, again: RuleFor, annotation: Any = None) -> Rule | None:
    if dataclasses.is_dataclass(kind):
        return DataclassRule(cast(type[Any], kind), again, annotation)
    if typing.is_typeddict(kind):
        return TypedDictRule(kind, again, annotation)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return NamedTupleRule(kind, again)
    return None


def _enum(kind: type[Enum]) -> Rule:
    try:
        return enum_rule(kind, Place(named(kind)))
    except Misfit as misfit:
        raise no_rule(kind, misfit.problem) from misfit


def _parametrised(annotation: Any, origin: Any, rules: _Rules) -> Rule:
    parts, again = get_args(annotation), rules.of
    if origin is Annotated:
        return _annotated(annotation, parts, again)
    if origin in (Union, types.UnionType):
        return UnionRule(tuple(map(again, parts)), " | ".join(map(_shown, parts)))
    if origin is Literal:
        return literal_rule(parts, Place("Literal"))
    if origin in _QUALIFIERS:
        return again(parts[0])
    if origin is tuple and not parts:
        return containers.TupleRule(())
    if origin in (list, tuple, *_SEQUENCES, *_MAPPINGS) or origin in _SETS:
        return _container(origin, parts, again)
    variables = getattr(origin, "__parameters__", ())
    if isinstance(origin, type) and variables and not is_model(origin):
        rule = rules.once(annotation, lambda own: _record(origin, own, annotation))
        if rule is not None:
            return rule
    if scalars.is_secret(origin):
        return scalars.SecretRule()
    return PydanticRule(annotation, type_adapter(annotation))


def _annotated(annotation: Any, parts: tuple[Any, ...], again: RuleFor) -> Rule:
    inner, *metadata = parts
    if any(getattr(one, "stored_as_text", False) for one in metadata):
        return texts.INTEGER_TEXT
    constrains = any(type(one).__module__.partition(".")[0] in _CONSTRAINING for one in metadata)
    return ConstrainedRule(again(inner), annotation) if constrains else again(inner)


def _container(kind: Any, parts: tuple[Any, ...], again: RuleFor) -> Rule:
    if kind in _MAPPINGS:
        key, value = parts or (str, Any)
        return containers.MappingRule(_key(key, again), again(value))
    if kind is tuple and parts and parts[-1] is not Ellipsis:
        return containers.TupleRule(tuple(again(one) for one in parts))
    item = again(parts[0]) if parts else scalars.JsonRule()
    if kind is tuple:
        return containers.ManyRule(item)
    if kind in _SETS:
        return containers.SetRule(item, *_SETS[kind])
    return containers.ListRule(item) if kind is list else containers.sequence_rule(item)


def _key(annotation: Any, again: RuleFor) -> Rule:
    """Return the rule of a mapping's keys: whole numbers are keys as text."""
    return texts.INTEGER_TEXT if annotation is int else again(annotation)


def _shown(annotation: Any) -> str:
    return "None" if annotation is type(None) else named(annotation)


def _hashable(annotation: Any) -> bool:
    try:
        hash(annotation)
    except TypeError:  # what stands in Annotated need have no hash
        return False
    return True


class _Later:
    """A rule that is made at its first use: a type alias may name itself."""

    def __init__(self, name: str, make: Callable[[], Rule]) -> None:
        self._name = name
        self._make = make
        self._made: Rule | None = None

    def _rule(self) -> Rule:
        if self._made is None:
            self._made = self._make()
        return self._made

    def encode(self, value: Any, place: Place, only_given: bool = False) -> Any:
        """Return the JSON form. Raises Misfit."""
        return self._rule().encode(value, place, only_given)

    def decode(self, stored: Any, place: Place) -> Any:
        """Return the value. Raises Misfit."""
        return self._rule().decode(stored, place)

    def schema(self, definitions: Definitions) -> Schema:
        """Return the schema, referred to by the alias."""
        return definitions.reference(self._name, lambda: self._rule().schema(definitions))
