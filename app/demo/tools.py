"""The demo's tools: the fake provider's, with limits short enough to watch.

Workers load `demo_tools` by its dotted name; where the provider listens stands in the environment.
"""

from __future__ import annotations

import os
from dataclasses import replace

from ...outbox.errors import ConfigError
from ...tool_adapters.fake_tools import fake_charge, fake_mail, fake_ticket
from ...tool_adapters.http_json import HttpJsonTool

PROVIDER_VARIABLE = "DEMO_PROVIDER_URL"
TOOLS_PLACE = "ackbox.app.demo.tools:demo_tools"
CALL_LIMIT_SECONDS = 3.0
SEND_DEADLINE_SECONDS = 1.0
SETTLE_SECONDS = 0.5


def demo_tools(url: str | None = None) -> list[HttpJsonTool]:
    """Return the three tools. Raises ConfigError where nobody says where the provider is."""
    base_url = url or os.environ.get(PROVIDER_VARIABLE)
    if not base_url:
        raise ConfigError(f"{PROVIDER_VARIABLE} is not set", next_step="ackbox demo")
    made = [
        make(base_url, call_limit_seconds=CALL_LIMIT_SECONDS, settle_seconds=SETTLE_SECONDS)
        for make in (fake_ticket, fake_mail, fake_charge)
    ]
    return [replace(tool, send_deadline_seconds=SEND_DEADLINE_SECONDS) for tool in made]
