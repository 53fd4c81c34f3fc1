"""Narrower forms of the wire key, for providers that want a UUID or few plain characters.

Pure, standard library only. Both forms are a hash of the whole wire key, so that two generations
of a step never share one, and both are the same in every process for ever.
"""

from __future__ import annotations

import hashlib
import uuid

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
SHORT_LENGTH = 25
"""Characters of the short form: enough base-36 digits for its 128 bits."""


def _hash_bits(wire_key: str) -> bytes:
    return hashlib.sha256(b"ackbox wire key\0" + wire_key.encode()).digest()[:16]


def wire_uuid(wire_key: str) -> str:
    """Return the wire key as a lower-case UUID with version-4 bits."""
    return str(uuid.UUID(bytes=_hash_bits(wire_key), version=4))


def wire_short(wire_key: str) -> str:
    """Return the wire key as 25 characters of `[0-9a-z]`."""
    number = uuid.UUID(wire_uuid(wire_key)).int
    digits = []
    for _ in range(SHORT_LENGTH):
        number, remainder = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[remainder])
    return "".join(reversed(digits))


def wire_forms(wire_key: str) -> frozenset[str]:
    """Return every form under which a tool may show the key."""
    return frozenset({wire_key, wire_uuid(wire_key), wire_short(wire_key)})
