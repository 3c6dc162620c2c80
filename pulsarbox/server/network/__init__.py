"""Sockets: listeners, connections, TLS, certificates, connection limits, and peers that speak another protocol.

May import asyncio and the broker's connection. Must not decide anything about topics.
"""
