"""Policies of namespaces and topics: how values are stored, and which level's value is in effect.

`kinds` gives each policy its meaning; `precedence` is the only walk from topic to namespace to broker. May import
`protocol.policies` and storage's interface. Must not enforce a policy: topics, subscriptions and limits ask for its
value. Imports no event loop, socket, thread, clock or random source.
"""
