"""Compression at rest: encoding entries when volumes are packed, decoding them on read.

May import the codec interfaces and the pure modules of storage. Must not touch files.
"""
