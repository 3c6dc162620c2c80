"""Resources specific to pulsarbox, below `/pulsarbox/v1`: live views, events, history, browsing, jobs, epoch commit.

May import the framework and the broker. Must not change the meaning of a Pulsar endpoint.
"""
