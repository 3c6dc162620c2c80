"""Dispatchers: which entry goes to which consumer next, for each subscription type.

May import consumers, limits and the storage interface. Must not move a cursor: acknowledgement belongs to
`broker.subscription`.
"""
