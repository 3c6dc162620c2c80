"""Files of events and of history samples in the data directory.

May import the standard library and `storage.lmdb.private_files`. Must not hold messages or anything that recovery
needs.
"""
