"""Decides which line is named of an error: the innermost one that its reader can know.

Imports the standard library only.
"""

from __future__ import annotations

import sysconfig
import traceback

_PYTHON = (sysconfig.get_path("stdlib"), "<frozen ")
_INSTALLED = ("site-packages", "dist-packages")


def raised_at(error: BaseException) -> tuple[str, int] | None:
    """Return file and line, passing over Python's own library: `os.environ[...]` says nothing.

    An error that never left that library has its innermost line; one never raised has none.
    """
    places = [
        (frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    own = [place for place in places if not _is_pythons(place[0])]
    return (own or places)[-1] if places else None


def _is_pythons(filename: str) -> bool:
    return filename.startswith(_PYTHON) and not any(part in filename for part in _INSTALLED)
