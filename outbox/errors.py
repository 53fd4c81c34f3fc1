"""The exceptions of ackbox: one root, and three things that each of them must say.

Outcomes and refusals are values inside the core; what stands here is raised only for a broken
environment, for a caller's mistake, and at the planner's public API where a returned refusal
could be overlooked. Pure: the standard library only.

Each error carries *what* happened, whether an *effect may exist* at a tool, and the *next step*
to take. None of them may carry arguments, results or passwords: they are printed and logged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

NO_EFFECT = "No effect exists: nothing was sent."
NOTHING_CHANGED = "Nothing was changed."


class AckboxError(Exception):
    """Root of every exception that ackbox raises on purpose.

    `code` is stable and meant for programs; the other parts are sentences for people.
    """

    default_code: ClassVar[str] = "error"
    default_effect: ClassVar[str] = NO_EFFECT

    def __init__(
        self,
        what: str,
        *,
        next_step: str,
        effect_may_exist: str | None = None,
        code: str | None = None,
    ) -> None:
        self.code = code or self.default_code
        self.what = what
        self.effect_may_exist = effect_may_exist or self.default_effect
        self.next_step = next_step
        super().__init__(what)

    def __str__(self) -> str:
        """Render code, what happened, the effect and the next step as one line of sentences."""
        return (
            f"{self.code}: {_sentence(self.what)} {_sentence(self.effect_may_exist)} "
            f"Try: {self.next_step}"
        )

    def as_dict(self) -> dict[str, str]:
        """Give the parts under the keys that `--json` prints."""
        return {
            "code": self.code,
            "what": self.what,
            "effect_may_exist": self.effect_may_exist,
            "next_step": self.next_step,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        """Survive pickling: errors cross process borders, and the parts are keyword-only."""
        return _rebuild, (type(self), self.as_dict(), dict(self.__dict__))


class InvalidIntent(AckboxError):
    """What the caller asked to store is not a legal intent (id, tool, arguments)."""

    default_code = "invalid_intent"
    default_effect = "Nothing was stored, and no effect exists."


class ConfigError(AckboxError):
    """A setting, an installation or a service is not as ackbox needs it."""

    default_code = "config_error"


class StoreUnavailable(AckboxError):
    """The database does not answer, or refuses to write."""

    default_code = "store_unavailable"
    default_effect = "What was stored before stays as it was; calls in flight may take effect."


class ProtocolViolation(AckboxError):
    """A bug: something happened that the protocol's table forbids."""

    default_code = "protocol_violation"
    default_effect = "An effect may exist: look at the intent's history before anything else."


class Refused(AckboxError):
    """The protocol's no, raised where a caller could overlook a returned refusal.

    `code` names the rule; every code has a paragraph in the documentation.
    """

    default_code = "refused"
    default_effect = NOTHING_CHANGED

    def __init__(
        self,
        code: str,
        next_step: str,
        *,
        what: str | None = None,
        effect_may_exist: str | None = None,
    ) -> None:
        super().__init__(
            what or f"refused ({code})",
            next_step=next_step,
            effect_may_exist=effect_may_exist,
            code=code,
        )


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _rebuild(
    error_type: type[AckboxError], parts: Mapping[str, str], state: Mapping[str, Any]
) -> AckboxError:
    error = error_type.__new__(error_type, parts["what"])
    error.__dict__.update(state)
    return error
