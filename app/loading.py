"""Tells what a user's own module raised while it was imported: by type and place, never by text.

Imports the standard library and `outbox.errors`.
"""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..outbox.errors import AckboxError, ConfigError

LOADERS = frozenset({"ackbox.tool_adapters.registry", "ackbox.app.consumer_process"})
"""Modules that import what users name."""


def loading_error(error: Exception) -> ConfigError | None:
    """Return what to tell of an error that came out of a loaded module, None for any other."""
    if isinstance(error, AckboxError):
        return None
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not LOADERS.intersection(frame.f_globals.get("__name__") for frame in frames):
        return None
    place = _place(traceback.extract_tb(error.__traceback__))
    return ConfigError(
        f"a module that the settings name cannot be loaded: {type(error).__name__} "
        f"at {place.filename}:{place.lineno}",
        next_step="correct it, then: ackbox doctor",
    )


def _place(frames: Sequence[traceback.FrameSummary]) -> traceback.FrameSummary:
    """Return the innermost frame outside Python's own library, which says nothing to the user."""
    library = (sysconfig.get_path("stdlib"), "<frozen ")
    packages = ("site-packages", "dist-packages")
    own = [
        frame
        for frame in frames
        if not frame.filename.startswith(library) or any(p in frame.filename for p in packages)
    ]
    return (own or frames)[-1]


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
