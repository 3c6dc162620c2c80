"""The tour: a box in memory with sample traffic, and the dashboard with five steps to take.

May import what commands share, the client and the dashboard. It must not import the broker or the server: the box is a
process of its own. To add traffic, add a participant to ``traffic``, and its topics to ``SCENE``.
"""
