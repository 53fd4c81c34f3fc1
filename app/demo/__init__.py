"""The demo: one plan on real services under planned kills, on ackbox and on bare RQ.

Part of the composition root: `cli` takes the options, `run` brings both sides up and down. What
happens in a run is decided in the pure modules `plan`, `schedule` and `figures`.
"""
