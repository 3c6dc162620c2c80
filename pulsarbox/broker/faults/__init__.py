"""Injected faults: rules that delay, drop or reject commands so that applications can be tested.

May import protocol values and the random source handed in. Must not change stored data: a fault acts on commands and
replies.
"""
