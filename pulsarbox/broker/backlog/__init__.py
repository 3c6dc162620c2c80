"""Backlogs: quotas by size and age, message expiry, and counting a backlog entry by entry.

May import topics, subscriptions and policies. Must not keep counters beside the cursor: a backlog is a subtraction of
running totals.
"""
