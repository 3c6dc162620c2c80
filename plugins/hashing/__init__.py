"""The built-in hashes: those of Pulsar's clients, xxHash and CRC-32C.

May import the hash contract and C-backed libraries. Must return the same value on every machine and version.
"""
