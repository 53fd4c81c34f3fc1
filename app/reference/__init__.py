"""The reference page of the public names, made from their source: signatures and docstrings.

May import the standard library only; reads source, and imports nothing of what it describes.
"""
