"""Admin REST resources of policies: those generated from the policy table, and the few exceptions.

May import the framework and `broker.policies`. Must not repeat a policy's checks, which are in `protocol.policies`.
"""
