"""Topic compaction: passes that keep the latest message of each key, and reads of the compacted topic.

May import parts of topics, policies and the storage interface. Must not import the topic itself, nor block a turn: a
pass works in bounded steps.
"""
