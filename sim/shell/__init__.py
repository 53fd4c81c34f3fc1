"""What lets a trace meet the real store and the real stack; nothing else of `sim` imports it."""
