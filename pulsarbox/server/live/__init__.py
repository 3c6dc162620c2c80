"""Live views: the rows of the dashboard and `top --once`, and how they are filtered, sorted and built.

May read the broker. Must not change it, and must not exceed its share of a turn.
"""
