"""Compaction: a second view of a topic that holds the latest message of every key, and how consumers read it."""
