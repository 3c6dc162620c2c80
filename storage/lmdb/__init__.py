"""The durable engine: LMDB environments, volumes, recovery, the data directory and its migration.

The only room of storage that touches files. May import the pure nouns of storage. Must not be imported by them or by
the broker.
"""
