"""Authentication and authorization: providers, principals, grants, and the rule for each command.

May import policies and protocol tokens. Must not answer a client itself: handlers and the HTTP framework translate
refusals.
"""
