"""Plugins: contracts, registry, and the probe that loads a foreign plugin in a child process first.

The rooms below hold the built-in ones and the conformance examples. May import protocol values. Must not import broker,
server or client.
"""
