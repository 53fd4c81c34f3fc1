"""`ackbox put`: one intent from the command line.

Decides that a tool which nobody has ever declared is a mistake, unless it is said not to be.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...outbox.contract import contract_from_document
from ...outbox.errors import InvalidIntent
from ...outbox.identity import mint_intent_id
from .again import again
from .command import command
from .faults import next_steps
from .naming import display_name
from .opening import Opened, opened
from .options import STORE, json_option, namespace_option, settings_options
from .output import print_json

if TYPE_CHECKING:
    from ...outbox.intent import Intent
    from ...tool_adapters.contract import IntentDraft

_NEXT = "ackbox put --help"


@command(
    "put",
    example="""ackbox put tickets.create '{"title": "VPN down"}' --run-id r1 --step open-ticket
ackbox put tickets.create @args.json --id r1-open-ticket --tools my_tools""",
)
@click.argument("tool")
@click.argument("args_json", metavar="ARGS_JSON")
@click.option("--run-id", metavar="TEXT", help="The plan's run; with --step it names the intent.")
@click.option("--step", metavar="TEXT", help="The step's name inside the run.")
@click.option("--id", "intent_id", metavar="ID", help="The intent's id, instead of run and step.")
@click.option("--lane", metavar="NAME", help="The lane; the tool's by default.")
@click.option("--tool-version", type=click.IntRange(min=1), help="The tool's version.")
@click.option("--not-before", metavar="TIME", help="Nothing is claimed before (ISO 8601, zone).")
@click.option("--deadline", metavar="TIME", help="Nothing is sent after (ISO 8601, zone).")
@click.option("--held-for", metavar="POLICY", help="Hold it until this policy has approved it.")
@click.option(
    "--if-exists", type=click.Choice(["refuse", "keep"]), default="refuse", show_default=True,
    help="What to do where other arguments are stored under the id.",
)  # fmt: skip
@click.option(
    "--no-worker-yet", is_flag=True,
    help="Store it although no worker has ever had the tool: it waits until one has.",
)  # fmt: skip
@namespace_option
@json_option
@settings_options(*STORE, "tools")
@click.pass_context
def put(ctx: click.Context, /, tool: str, args_json: str, as_json: bool, **given: Any) -> None:
    """Store one intent: the right to one effect at a tool.

    ARGS_JSON is a JSON object, @FILE or - for stdin. The same id with the same arguments returns
    the stored intent; with other arguments it is refused (args_conflict).
    """
    _require_name(given)
    args = parse_arguments(_read(args_json))
    options = _options(given)
    with opened(ctx.params) as outbox, outbox.planner(given["namespace"]) as planner:
        call = _call(outbox, tool, args, options, declared=not given["no_worker_yet"])
        untyped = args if isinstance(call, str) else None
        with next_steps({"args_conflict": _look(given)}, _short_names(given)):
            intent = planner.put(call, untyped, if_exists=given["if_exists"], **options)
    _print(intent, as_json)


def _require_name(given: Mapping[str, Any]) -> None:
    names = [given[name] is not None for name in ("run_id", "step", "intent_id")]
    if names not in ([True, True, False], [False, False, True]):
        raise InvalidIntent(
            "an intent is named by --run-id and --step together, or by --id alone", next_step=_NEXT
        )


def _look(given: Mapping[str, Any]) -> str:
    name = given["intent_id"] or f"{given['run_id']}:{given['step']}"
    return f"ackbox show {name}; or name another step, or --if-exists keep"


def _short_names(given: Mapping[str, Any]) -> dict[str, str]:
    """Return what people call the id that run and step stand for."""
    if given["intent_id"] is not None:
        return {}
    minted = mint_intent_id(given["namespace"], given["run_id"], given["step"])
    return {minted: f"{given['run_id']}:{given['step']}"}


def parse_arguments(text: str) -> dict[str, Any]:
    """Return the arguments. Raises InvalidIntent for what is not one JSON object.

    What JSON allows and a tool could change (NaN, large integers, ...) is judged by the core.
    """
    try:
        args = json.loads(text, object_pairs_hook=_without_doubles)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidIntent(f"ARGS_JSON is not JSON at {place}", next_step=_NEXT) from None
    except RecursionError:
        raise InvalidIntent("ARGS_JSON is nested too deeply", next_step=_NEXT) from None
    except ValueError:
        raise InvalidIntent("ARGS_JSON holds a number that is too long", next_step=_NEXT) from None
    if not isinstance(args, dict):
        raise InvalidIntent("ARGS_JSON must be a JSON object: {...}", next_step=_NEXT)
    return args


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidIntent(f"ARGS_JSON holds the key {key!r} twice", next_step=_NEXT)
        found[key] = value
    return found


def _read(text: str) -> str:
    try:
        if text == "-":
            return sys.stdin.buffer.read().decode()
        return Path(text[1:]).read_bytes().decode() if text.startswith("@") else text
    except OSError as error:
        raise InvalidIntent(
            f"the file {text[1:]} cannot be read ({error.strerror})", next_step=_NEXT
        ) from None
    except UnicodeDecodeError:
        raise InvalidIntent("ARGS_JSON is not UTF-8", next_step=_NEXT) from None


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    options = {name: given[name] for name in ("run_id", "step", "intent_id", "lane", "held_for")}
    options["version"] = given["tool_version"]
    for name in ("not_before", "deadline"):
        options[name] = _moment(name, given[name])
    return options


def _moment(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        flag = name.replace("_", "-")
        raise InvalidIntent(
            f"--{flag} is no time like 2027-01-31T12:00:00+01:00", next_step=_NEXT
        ) from None


def _call(
    outbox: Opened, tool: str, args: dict[str, Any], options: dict[str, Any], *, declared: bool
) -> str | IntentDraft:
    """Return what `Planner.put` takes: a checked draft where the tool's code is at hand.

    Else version and lane come from what workers have declared.
    """
    from ...tool_adapters.function import FunctionTool
    from ..parts import load_registry

    adapter = load_registry(outbox.settings, outbox.limits).latest(tool)
    if isinstance(adapter, FunctionTool):
        return adapter.intent(**args)
    rows = [] if adapter else outbox.rows("declared_tools", {"tool": tool})
    contract = adapter.contract if adapter else None
    if rows:
        contract = contract_from_document(rows[0]["declared"])
    if contract is None and declared:
        raise _unknown_tool(outbox, tool)
    if contract is not None:
        options["version"] = options["version"] or contract.version
        options["lane"] = options["lane"] or contract.lane
    return tool


def _unknown_tool(outbox: Opened, tool: str) -> InvalidIntent:
    import difflib

    known = sorted({row["tool"] for row in outbox.rows("declared_tools", {"tool": None})})
    near = difflib.get_close_matches(tool, known, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return InvalidIntent(
        f"no worker has ever had the tool {tool!r}{hint}",
        next_step="ackbox worker --tools MODULE, or name its code: ackbox put --tools MODULE ...",
        code="unknown_tool",
    )


def _print(intent: Intent, as_json: bool) -> None:
    if as_json:
        names = ("namespace", "intent_id", "generation", "wire_key", "tool", "lane", "run_id")
        print_json({name: getattr(intent, name) for name in (*names, "step", "created")})
        return
    shown = display_name(intent.namespace, intent.intent_id, intent.run_id, intent.step,
                         intent.generation)  # fmt: skip
    word = "stored" if intent.created else "was stored already"
    click.echo(f"{shown} {word} · {intent.tool} · lane {intent.lane} · id {intent.intent_id}")
    click.echo(again(f"ask for it: ackbox wait {shown}"))
