"""Attacks on a broker in a separate process: every attack must be answered, rejected or disconnected.

Each attack is a function of a ``Victim``. During all of them, a well-behaved client publishes and checks health. After
each attack, the broker must be alive, the client must have progressed, and memory must be within its limit. ``make
attack`` runs the attacks at full size, ``test_attack`` at a small one.
"""
