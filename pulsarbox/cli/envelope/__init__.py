"""Envelopes: messages as lossless JSON lines, written and read back.

May import protocol and client. Must not read options or print; `cli.messages` does.
"""
