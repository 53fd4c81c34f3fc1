"""The protocol and its store: what may happen to an intent, and the rows that say so.

Imports no other package of ackbox; only `shell` touches a database, a queue or a clock.
"""

# A second copy under a bare name would have other classes, and its values would compare unequal.
if __name__ != "ackbox.outbox":
    raise ImportError("outbox can be imported only as ackbox.outbox")
