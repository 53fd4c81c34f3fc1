"""How a tool is called, asked and judged, without sending anything.

Imports `outbox` only; the transports stand in `shell`.
"""

# A second copy under a bare name would have other classes, and its values would compare unequal.
if __name__ != "ackbox.tool_adapters":
    raise ImportError("tool_adapters can be imported only as ackbox.tool_adapters")
