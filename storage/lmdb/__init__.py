"""The durable engine: LMDB environments, volumes, recovery, the data directory and its migration.

Opens files, locks and memory maps. May import the pure modules of storage; neither they nor the broker may import it.
"""
