"""Subscriptions: consumers, acknowledgement, cursor movement and position search.

May import dispatchers, the storage interface and protocol values. Must not decide which consumer receives an entry:
that is `broker.dispatch`.
"""
