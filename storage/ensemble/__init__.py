"""Ensembles: the journal of one box on several data directories, which act as its bookies.

May import the pure modules of storage; only `lmdb_member` imports `storage.lmdb`. Must not know topics, policies or
connections: a batch says how many copies it needs.
"""
