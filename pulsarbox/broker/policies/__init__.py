"""Policies: what may be set for a namespace or a topic, one file a policy, and which level wins."""
