"""Backlogs: quotas by size and age, message expiry, backlog analysis and unsubscribed messages.

May import parts of topics and of subscriptions, and policies. Must not import the topic or the subscription itself, nor
keep counters beside the cursor: a backlog is a subtraction of running totals.
"""
