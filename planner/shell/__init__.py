"""The planner's calls against a real database, and the consumer's loop."""
