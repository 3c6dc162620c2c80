"""Statistics resources of Pulsar: topics, internal statistics, the whole broker, and `/metrics`.

May import the framework and read the broker. Must not change the broker.
"""
