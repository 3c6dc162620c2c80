"""Sockets: listeners, connections, TLS, certificates, connection limits, and detection of other protocols.

May import asyncio and the broker's connection. Must not decide anything about topics.
"""
