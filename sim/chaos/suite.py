"""The whole suite as one document: headline, scenarios, goldens and fuzz, without any clock.

May import the modules of the suite.
"""

from __future__ import annotations

import json
from typing import Any

from .catalog import FAULTS, SCENARIOS
from .fuzz import SEEDS, fuzz
from .goldens import GOLDENS, run_goldens
from .headline import WITHOUT_PROOF, headline, without_proof
from .scenario import run_scenario

VERSION = 1


def document(fuzz_seeds: range = SEEDS) -> dict[str, Any]:
    """Run everything; two runs return equal documents."""
    top, unproven, fuzzed = headline(), without_proof(), fuzz(fuzz_seeds)
    scenarios = [r.as_dict() for scenario in SCENARIOS for r in run_scenario(scenario)]
    goldens = [result.as_dict() for result in run_goldens()]
    bad = {one["golden"] for one in goldens if not one["passed"]}
    found = len(top["broken"]) + len(unproven["broken"]) + fuzzed["violations"] + len(bad)
    return {
        "ackbox_chaos": VERSION,
        "violations": found + sum(one["violations"] for one in scenarios),
        "faults": FAULTS,
        "headline": top["arms"],
        "headline_by_seed": top["by_seed"],
        "headline_broken": top["broken"],
        WITHOUT_PROOF: unproven,
        "scenarios": scenarios,
        "goldens": {"total": len(GOLDENS), "passed": len(GOLDENS) - len(bad), "cases": goldens},
        "fuzz": fuzzed,
    }


def as_text(results: dict[str, Any]) -> str:
    """Return the document as the committed file holds it: one line for each case."""
    lines = [f"  {json.dumps(name)}: {_value(value)}" for name, value in results.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _value(value: Any, indent: str = "  ") -> str:
    """Write lists of objects and objects of objects by line, everything else on one."""
    deeper = indent + "  "
    if isinstance(value, list) and value and isinstance(value[0], dict):
        items = [f"{deeper}{json.dumps(one)}" for one in value]
        return "[\n" + ",\n".join(items) + f"\n{indent}]"
    nested = isinstance(value, dict) and any(isinstance(v, dict | list) for v in value.values())
    if nested:
        items = [f"{deeper}{json.dumps(k)}: {_value(v, deeper)}" for k, v in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    return json.dumps(value)
