"""Admin REST resources of Pulsar for a whole cluster: clusters, load balancing, bookies. One file per resource.

A box stores what Pulsar stores. Answers to changes without effect in a single broker have a warning. May import the
framework, other resources and the broker. Must not open sockets or files.
"""
