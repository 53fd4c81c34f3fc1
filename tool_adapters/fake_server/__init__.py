"""A fake ticket, mail and payment provider that counts effects on its own side.

Pure: what it knows (`ledger`), what may go wrong (`faults`) and how it answers one request
(`answers`). The sockets stand in `shell.fake_server`. Run it in a process of its own with
`python -m ackbox.tool_adapters.fake_server --port 0 --print-port`.
"""
