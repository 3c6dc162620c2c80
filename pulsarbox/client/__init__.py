"""A thin client for our own tools, built on the protocol and the Admin API only."""
