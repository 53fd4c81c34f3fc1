"""The transports that carry an adapter's requests to a tool."""
