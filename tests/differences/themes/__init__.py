"""Themes: files of scenarios that run against both brokers.

May import the scenario register, the connection and the loads of the parent package, and the protocol. Must not import
the box: both brokers are reached through their ports.
"""
