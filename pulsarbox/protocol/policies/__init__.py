"""The table of policies: names, JSON keys, levels, checks and Admin API paths.

Broker, REST, command line and documentation are generated from or driven by its rows. Must not import the broker, and
imports no event loop, socket, thread or clock.
"""
