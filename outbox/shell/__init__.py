"""What the store does: the database, the queue, the clock and the loops that drive the passes."""
