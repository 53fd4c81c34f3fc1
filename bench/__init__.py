"""Measurements against the raw-SQL ceiling and against peers.

May import every package; nothing imports it but the command line.
"""

# A second copy under a bare name would have other classes, and its values would compare unequal.
if __name__ != "ackbox.bench":
    raise ImportError("bench can be imported only as ackbox.bench")
