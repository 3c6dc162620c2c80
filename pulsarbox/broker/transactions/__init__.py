"""Transactions: the coordinator, and what topics and subscriptions keep of those that are open."""
