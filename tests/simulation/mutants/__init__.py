"""Planted bugs of the simulation, by the affected part of the broker, and their registry.

May import the parts of the product that they patch. Must not import the rules, which must detect the bugs
independently.
"""
