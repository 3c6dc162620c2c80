"""Keeping the copies of an ensemble complete: audit, repair, scrub, and the members that join and leave.

May import the modules of the ensemble; only `lmdb_directories` imports `storage.lmdb` and touches files. Must not read
clocks, sleep or start threads: the caller's thread runs one bounded step after the other.
"""
