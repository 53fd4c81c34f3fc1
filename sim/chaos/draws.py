"""Random numbers that depend on a seed and a label alone, never on the order of the draws.

The hash is 32-bit FNV-1a, the generator mulberry32, so that a schedule drawn elsewhere by the same
recipe is the same to the digit. Pure; the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator

_MASK = 0xFFFFFFFF
_FNV_START = 0x811C9DC5
_FNV_PRIME = 0x01000193
_STEP = 0x6D2B79F5


def fnv1a(text: str) -> int:
    """Return the 32-bit FNV-1a hash of a text's UTF-8 bytes."""
    value = _FNV_START
    for byte in text.encode("utf-8"):
        value = ((value ^ byte) * _FNV_PRIME) & _MASK
    return value


def mulberry32(state: int) -> Iterator[float]:
    """Yield the shares in [0, 1) of a mulberry32 generator, without end."""
    state &= _MASK
    while True:
        state = (state + _STEP) & _MASK
        mixed = ((state ^ (state >> 15)) * (state | 1)) & _MASK
        mixed ^= (mixed + ((mixed ^ (mixed >> 7)) * (mixed | 61))) & _MASK
        yield ((mixed ^ (mixed >> 14)) & _MASK) / 2**32


def stream(seed: int, label: str) -> Iterator[float]:
    """Yield the successive shares of a label, for a source that goes on."""
    return mulberry32(fnv1a(f"{seed}:{label}"))


def share(seed: int, label: str) -> float:
    """Return the one share of a label."""
    return next(stream(seed, label))
