"""The simulator's commands. Each is imported when it is called for; the worlds stand in `sim`."""
