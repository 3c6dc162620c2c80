"""The durable engine: LMDB environments, volumes, recovery, the data directory.

Opens files, locks and memory maps. May import the pure modules of storage; neither they nor the broker may import it.
"""
