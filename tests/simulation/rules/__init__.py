"""Rules of the simulation: each compares the broker's behavior with the model and raises a Violation.

May import the model, and the policies, records and formats of the product. Must not change the broker.
"""
