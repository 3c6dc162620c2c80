"""Envelopes: messages as JSON lines, with all that a topic stored of them, written and read back.

May import protocol and client. Must not read options or print: `cli.messages` does.
"""
