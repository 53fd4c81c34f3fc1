"""The side that decides: mints steps, puts intents and takes their observations.

Imports `tool_adapters` and `outbox`, never `workers`; only `shell` acts.
"""

# A second copy under a bare name would have other classes, and its values would compare unequal.
if __name__ != "ackbox.planner":
    raise ImportError("planner can be imported only as ackbox.planner")
