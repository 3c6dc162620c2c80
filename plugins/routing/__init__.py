"""The built-in ways from a message to a partition."""
