"""Admin REST resources of Pulsar, one file per resource.

May import the framework and the broker. Must not open sockets or files.
"""
