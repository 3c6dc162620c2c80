"""Space reclamation: choosing volumes, rewriting live records, and removing dead volumes.

May import the pure modules of storage and, for the steps that write, `storage.lmdb`. Must not remove a volume before a
synced checkpoint covers it.
"""
