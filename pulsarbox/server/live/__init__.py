"""Live views: the rows that dashboard and `top --once` show, and how they are filtered, ordered and made.

May read the broker. Must not change it, and must not take longer than its share of a turn.
"""
