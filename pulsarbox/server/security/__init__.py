"""Authentication as configured: the keys and users that settings name, read from files and the environment.

May import the broker's providers. Must not authenticate clients itself: the broker does.
"""
