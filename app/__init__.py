"""The composition root: settings, embedded services, logging and the command line.

May import every package; nothing imports it but the benchmarks.
"""

# A second copy under a bare name would have other classes, and its values would compare unequal.
if __name__ != "ackbox.app":
    raise ImportError("app can be imported only as ackbox.app")
