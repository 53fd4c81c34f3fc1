"""Says which protections of a set-up are on, from the live configuration and services.

Each check reads one part and returns findings; none changes anything but a test key in Redis that
expires by itself. Nothing is reported that no line tells how to put right.
"""

from __future__ import annotations

from .finding import FAIL, OK, WARN, Finding
from .outbox import beats_here
from .rounds import diagnose

__all__ = ["FAIL", "OK", "WARN", "Finding", "beats_here", "diagnose"]
