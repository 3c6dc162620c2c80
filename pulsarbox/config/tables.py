"""The tables of pulsarbox.toml in order."""

from typing import Final

TABLES: Final = {
    "network": "Ports, listeners and connection limits",
    "tls": "TLS ports, server and client certificates, protocol versions and cipher suites",
    "broker": "Process-wide settings: cluster name, data directory, shutdown",
    "topics": "Topics and subscriptions: creation, allowed types, patterns, deduplication",
    "policies": "Defaults for topics without a policy of the topic or namespace",
    "throttling": "Rate limits for publishing, dispatch and subscribing",
    "transactions": "Transactions: atomic publishing and acknowledgement",
    "dispatcher": "Dispatch of messages to consumers",
    "plugins": "Plugins for routing, hashing and compression",
    "managedLedger": "Ledger rollover and the entry cache",
    "journal": "The log on disk: volumes, checkpoints, packing and compression",
    "ensemble": "Several data directories, and copies of the messages in them",
    "authentication": "Authentication of clients: tokens, passwords and client certificates",
    "authorization": "Authorization of authenticated clients",
    "admin": "The Admin REST API",
    "packages": "Packages: files with the code of functions, sinks and sources",
    "recording": "Recorded events, and the history of the live views",
    "metrics": "Metrics at /metrics and the health check at /status.html",
    "logging": "Log level, format and rotation",
}

PORTS: Final = ("brokerServicePort", "webServicePort", "brokerServicePortTls", "webServicePortTls")
"""The port settings: both without TLS, then both with TLS."""
