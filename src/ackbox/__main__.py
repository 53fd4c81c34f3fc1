"""Lets `python -m ackbox` do what the command `ackbox` does."""

from .app.cli import main

main()
