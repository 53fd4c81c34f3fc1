"""A virtual world that runs the shipped protocol under every fault it can think of.

Imports the pure modules below it; only `shell` meets the real store.
"""

# A second copy under a bare name would have other classes, and its values would compare unequal.
if __name__ != "ackbox.sim":
    raise ImportError("sim can be imported only as ackbox.sim")
