"""Giving disk space back: choosing volumes, rewriting live records, and removing what is dead.

May import the pure nouns of storage and, for the steps that write, `storage.lmdb`. Must not remove a volume before a
synced checkpoint covers it.
"""
