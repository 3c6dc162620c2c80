"""Scenarios run against a box and a Pulsar broker, and the differences between their responses.

Run by hand: ``python -m tests.differences --help``. Each file of scenarios is a theme.
"""
