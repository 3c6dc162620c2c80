"""The durable engine: LMDB environments, volumes, recovery, the data directory and its migration.

The only package of storage that touches files, besides `packing`, `recording`, `backup` and `inspection`. May import
the pure modules of storage; neither they nor the broker may import it.
"""
