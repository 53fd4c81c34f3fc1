"""ackbox."""
