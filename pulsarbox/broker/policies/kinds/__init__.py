"""One file per policy: the type of its value, its default and its conversion from and to JSON.

May import `protocol.policies` and `broker.policies.policy`. Must not look up other levels: that is
`broker.policies.precedence`.
"""
