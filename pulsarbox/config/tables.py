"""The tables of pulsarbox.toml in order."""

from typing import Final

TABLES: Final = {
    "network": "Ports, connections and what a connection may hold",
    "tls": "Ports that speak TLS, certificates, and what clients have to show",
    "broker": "The process as a whole",
    "topics": "Which topics there may be and who may bring them into being",
    "policies": "What holds for topics where neither they nor their namespaces say otherwise",
    "throttling": "How much may be published and dispatched, and how often consumers may subscribe",
    "transactions": "Messages and acknowledgements that count together or not at all",
    "dispatcher": "How messages go to consumers",
    "plugins": "Plugins: what others have written for routing and hashing",
    "managedLedger": "How a topic's messages are cut into ledgers, and the cache in front of them",
    "journal": "The log on disk",
    "authentication": "How clients prove who they are",
    "authorization": "What clients may do who have proved who they are",
    "admin": "The Admin REST API",
    "recording": "What is kept for those who look later: events, and the history of what the dashboard shows",
    "metrics": "What is told at /metrics and /status.html",
    "logging": "What the broker says about itself",
}

PORTS: Final = ("brokerServicePort", "webServicePort", "brokerServicePortTls", "webServicePortTls")
"""The port settings: both without TLS, then both with TLS."""
