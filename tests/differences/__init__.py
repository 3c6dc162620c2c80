"""Scenarios that are played to a box and to a Pulsar broker alike, and what the two answered differently.

Run by hand: ``python -m tests.differences --help``. A file of scenarios is a theme.
"""
