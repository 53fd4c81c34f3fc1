"""Options of a put: one that is misspelt is refused, since the effect would go out without it."""

from typing import Any

import pytest

from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.errors import InvalidIntent
from ackbox.planner.options import checked_draft

NAME = {"run_id": "r1", "step": "s1"}


@pytest.mark.parametrize(
    ("options", "told"),
    [({"dedline": None}, "did you mean deadline?"), ({"held_fr": "p"}, "did you mean held_for?")],
)
def test_a_misspelt_option_is_refused_with_the_nearest(options: dict[str, Any], told: str) -> None:
    """A gate or deadline that is misspelt must not be one that is not there."""
    with pytest.raises(InvalidIntent, match="has no option") as refused:
        checked_draft("mails.send", {}, DEFAULTS, {**NAME, **options})
    assert told in str(refused.value)
    assert "not_before" in (refused.value.next_step or "")


def test_every_option_by_its_own_name_is_taken() -> None:
    """The check refuses nothing that a put may be given."""
    options = {**NAME, "namespace": "default", "held_for": "policy", "deadline": None}
    draft = checked_draft("mails.send", {}, DEFAULTS, options)
    assert draft.held_for == "policy"
