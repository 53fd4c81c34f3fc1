"""Which line is named of an error: the user's own, not one inside Python's library."""

import os
from collections.abc import Callable

import pytest

from ackbox.tool_adapters.raised_at import raised_at


def _missing_variable() -> None:
    os.environ["ACKBOX_TEST_NO_SUCH_VARIABLE"]


def _own_raise() -> None:
    raise ValueError


@pytest.mark.parametrize("function", [_missing_variable, _own_raise])
def test_the_line_of_this_file_is_named(function: Callable[[], None]) -> None:
    """A KeyError out of os.environ is told by the line that asked for the variable."""
    with pytest.raises((KeyError, ValueError)) as caught:
        function()
    first = function.__code__.co_firstlineno
    assert raised_at(caught.value) == (__file__, first + 1)


def test_an_installed_package_is_not_pythons_own_library() -> None:
    """Site-packages stand below the library's folder, and may be the user's own code."""
    place = os.path.join(os.path.dirname(os.__file__), "site-packages", "shop", "tools.py")
    names: dict[str, Callable[[], None]] = {}
    source = "def fail():\n    import json\n    json.loads('{')\n"
    exec(compile(source, place, "exec"), names)
    with pytest.raises(ValueError, match="Expecting") as caught:
        names["fail"]()
    assert raised_at(caught.value) == (place, 3)


def test_an_error_that_was_never_raised_has_no_line() -> None:
    """A returned or made-up error was raised nowhere."""
    assert raised_at(ValueError()) is None
