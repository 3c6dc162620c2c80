"""Subscriptions: consumers, acknowledgement, cursor movement and position search.

`subscription` builds a subscription from its parts, which must not import it. May import dispatchers, parts of topics,
the storage interface and protocol values. Must not import `topic.topic`, nor decide which consumer receives an entry:
that is `broker.dispatch`.
"""
