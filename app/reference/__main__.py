"""Writes the reference page of the public names.

`python -m ackbox.app.reference` prints it; `--write PATH` writes it, `--check PATH` exits 1 where
the page is not up to date. May import its own package and the standard library only.
"""

from __future__ import annotations

import sys
from pathlib import Path

from .render import page


def main(arguments: list[str]) -> int:
    """Print, write or check the page."""
    match arguments:
        case ["--write", path]:
            Path(path).write_text(page(), encoding="utf-8")
        case ["--check", path]:
            if Path(path).read_text(encoding="utf-8") != page():
                sys.stderr.write(f"run: python -m ackbox.app.reference --write {path}\n")
                return 1
        case _:
            sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
