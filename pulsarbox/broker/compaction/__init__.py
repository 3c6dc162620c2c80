"""Topic compaction: passes that keep the latest message of each key, and reads of the compacted topic.

May import topics, policies and the storage interface. Must not block a turn: a pass works in bounded steps.
"""
