"""The JSON types themselves: they stand for what they are.

Decides that an annotation's own subclasses pass where they equal the plain value, that `Any` takes
exactly the JSON types, and that minus zero is zero (a database keeps no sign of zero). NaN, large
integers, NUL and lone surrogates are refused for the whole by `identity.canonical`. Pure.
"""

from __future__ import annotations

import math
from typing import Any

from ...outbox.identity import SAFE_INTEGER
from .json_schema import Definitions
from .place import Misfit, Place, Schema, named, wrong_type

SECRET = "is a secret, and arguments and results are stored and shown"
SECRET_STEP = "name the secret in the adapter"


class NoneRule:
    """Null."""

    def encode(self, value: Any, place: Place, only_given: bool = False) -> None:
        """Return null. Raises Misfit for anything else."""
        if value is not None:
            raise wrong_type(place, value, "None")

    decode = encode

    def schema(self, definitions: Definitions) -> Schema:
        """Return the JSON type."""
        return {"type": "null"}


class BoolRule:
    """True and false, and no number."""

    def encode(self, value: Any, place: Place, only_given: bool = False) -> bool:
        """Return the truth value. Raises Misfit."""
        if not isinstance(value, bool):
            raise wrong_type(place, value, "bool")
        return value

    decode = encode

    def schema(self, definitions: Definitions) -> Schema:
        """Return the JSON type."""
        return {"type": "boolean"}


class IntRule:
    """A whole number that is no truth value."""

    def encode(self, value: Any, place: Place, only_given: bool = False) -> int:
        """Return the number. Raises Misfit."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong_type(place, value, "int")
        return int(value)

    decode = encode

    def schema(self, definitions: Definitions) -> Schema:
        """Return the JSON type."""
        return {"type": "integer"}


class FloatRule:
    """A number; a whole one given as int comes back as float."""

    def encode(self, value: Any, place: Place, only_given: bool = False) -> float:
        """Return the number. Raises Misfit."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong_type(place, value, "float")
        if isinstance(value, int) and abs(value) > SAFE_INTEGER:
            raise Misfit(place, "integers beyond 2**53 - 1 lose digits as float")
        return _finite(float(value), place)

    decode = encode

    def schema(self, definitions: Definitions) -> Schema:
        """Return the JSON type."""
        return {"type": "number"}


class StrRule:
    """Text."""

    def encode(self, value: Any, place: Place, only_given: bool = False) -> str:
        """Return the text. Raises Misfit."""
        if not isinstance(value, str):
            raise wrong_type(place, value, "str")
        return str.__str__(value)

    decode = encode

    def schema(self, definitions: Definitions) -> Schema:
        """Return the JSON type."""
        return {"type": "string"}


class JsonRule:
    """`Any`: exactly the JSON types, since nothing says what else should come back."""

    def encode(self, value: Any, place: Place, only_given: bool = False) -> Any:
        """Return a copy. Raises Misfit with the place of whatever is no JSON."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return _finite(value, place)
        if type(value) is list:
            return [self.encode(item, place.item(n)) for n, item in enumerate(value)]
        if type(value) is dict:
            return {
                text_key(key, place): self.encode(item, place.field(key))
                for key, item in value.items()
            }
        raise no_json(value, place)

    def decode(self, stored: Any, place: Place) -> Any:
        """Return it as it is."""
        return stored

    def schema(self, definitions: Definitions) -> Schema:
        """Return the schema that everything fits."""
        return {}


def _finite(value: float, place: Place) -> float:
    """Return a number that JSON has, zero without its sign. Raises Misfit."""
    if not math.isfinite(value):
        raise Misfit(place, "NaN and infinities are not JSON")
    return value + 0.0


def text_key(key: Any, place: Place) -> str:
    """Return an object's key. Raises Misfit where it is no text."""
    if type(key) is not str:
        raise Misfit(place, f"the key of type {named(type(key))} is not text")
    return key


def no_json(value: Any, place: Place) -> Misfit:
    """Return the misfit of a value that only an annotation could store."""
    kind = type(value)
    if is_secret(kind):
        return Misfit(place, SECRET, SECRET_STEP)
    return Misfit(
        place, f"{named(kind)} is not a JSON type", f"annotate it as {named(kind)}, or pass JSON"
    )


def is_secret(kind: Any) -> bool:
    """Return whether a type hides its value, as pydantic's secrets do."""
    return isinstance(kind, type) and callable(getattr(kind, "get_secret_value", None))


class SecretRule:
    """A secret is never stored."""

    def encode(self, value: Any, place: Place, only_given: bool = False) -> Any:
        """Raise Misfit."""
        raise Misfit(place, SECRET, SECRET_STEP)

    decode = encode

    def schema(self, definitions: Definitions) -> Schema:
        """Return a schema that nothing fits."""
        return {"not": {}}
