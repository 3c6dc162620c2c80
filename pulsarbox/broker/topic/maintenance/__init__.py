"""Maintenance of stored topics: rollover and trimming of ledgers, unloading, deletion, and the deadlines for them.

May import what the topics may: the rooms of the broker and storage. Must not decide what policies say,
and must not read a clock: each task is called with the time and returns when it must run next.
"""
