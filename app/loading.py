"""Tells what a user's own module raised while it was imported: by type and place, never by text.

Imports the standard library, `outbox.errors` and the rule which line is named.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from ..outbox.errors import AckboxError, ConfigError
from ..tool_adapters.raised_at import raised_at

LOADERS = frozenset({"ackbox.tool_adapters.registry", "ackbox.app.consumer_process"})
"""Modules that import what users name."""


def loading_error(error: Exception) -> ConfigError | None:
    """Return what to tell of an error that came out of a loaded module, None for any other."""
    if isinstance(error, AckboxError):
        return None
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not LOADERS.intersection(frame.f_globals.get("__name__") for frame in frames):
        return None
    filename, line = raised_at(error) or ("", 0)
    return ConfigError(
        f"a module that the settings name cannot be loaded: {type(error).__name__} "
        f"at {filename}:{line}",
        next_step="correct it, then: ackbox doctor",
    )


@contextmanager
def loading() -> Iterator[None]:
    """Raise ConfigError for what a loaded module raises; everything else passes."""
    try:
        yield
    except Exception as error:
        told = loading_error(error)
        if told is not None:
            raise told from error
        raise
