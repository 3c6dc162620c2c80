"""An attacker against a box in a process of its own: all it can do is be answered, refused or cut off.

Each attack is a function of a ``Victim``. Beside all of them a good client publishes and asks for health; after each
the box must live, the good client must have got on, and memory must be where it may be. ``make attack`` runs them at
full size, ``test_attack`` at a small one.
"""
