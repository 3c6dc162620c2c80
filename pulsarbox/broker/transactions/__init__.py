"""Transactions: the coordinator, pending acknowledgements, visibility, and the epochs of sinks.

May import topics, subscriptions and the storage interface. Must not make a result visible before the commit that holds
it is durable.
"""
