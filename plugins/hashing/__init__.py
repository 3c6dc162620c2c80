"""The built-in hashes: those of Pulsar's clients, and two more.

May import the hash contract and C-backed libraries. Must return the same value on every machine and version.
"""
