"""The side that calls tools: one attempt at a time per intent, under a lease and a fence.

Imports `tool_adapters` and `outbox`, never `planner`; only `shell` acts.
"""

# A second copy under a bare name would have other classes, and its values would compare unequal.
if __name__ != "ackbox.workers":
    raise ImportError("workers can be imported only as ackbox.workers")
