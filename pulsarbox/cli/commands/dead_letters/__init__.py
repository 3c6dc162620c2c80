"""Commands for dead letters: ``pulsarbox dlq``, ``pulsarbox job`` and ``pulsarbox sub dead-letter``.

May import what the other administrative commands may. Must not move messages: jobs of the box do that.
"""
