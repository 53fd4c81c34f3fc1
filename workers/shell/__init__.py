"""Worker processes: the RQ worker class, the delivery job, the pool and the reconciler's loop."""
