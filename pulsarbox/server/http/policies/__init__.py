"""Admin REST resources of policies: those that follow from the policy table, and the few that do not.

May import the framework and `broker.policies`. Must not repeat a policy's checks: they stand in `protocol.policies`.
"""
