"""Persistence of the core: group commit, checkpoints and other chores, reads, and the tail cache.

May import the storage and the timers. Must not import topics or subscriptions except for their types: they pass their
changes here.
"""
