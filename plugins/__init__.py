"""Plugins: contracts, registry, and the probe that first loads a third-party plugin in a child process.

The packages below hold the built-in plugins and the conformance checks. May import protocol values. Must not import
broker, server or client.
"""
