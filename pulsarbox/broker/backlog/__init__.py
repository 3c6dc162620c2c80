"""Backlogs: quotas by size and age, message expiry, backlog analysis and unsubscribed messages.

May import topics, subscriptions and policies. Must not keep counters beside the cursor: a backlog is a subtraction of
running totals.
"""
