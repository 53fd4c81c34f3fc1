"""How values of a signature's types are stored as JSON and read back as annotated.

One rule per type. Pure: `outbox`, the standard library and, where a signature needs it, pydantic,
which is imported at that moment and not before.
"""
