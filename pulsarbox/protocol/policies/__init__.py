"""The table of policies: names, JSON keys, levels, checks and Admin API paths.

Broker, REST, command line and documentation are driven by its rows. Must not import the broker, an event loop, sockets,
threads or a clock.
"""
