"""Themes of the Admin API and of pulsar-admin: requests and commands, and what both brokers answer.

May import what other themes may. The themes beside this folder are about the binary protocol and its clients.
"""
