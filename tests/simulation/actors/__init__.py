"""Simulated clients and operators, which act at random from the seed of a run.

May import the model, the network and the protocol. Must not import the mutants.
"""
