"""Compression at rest: encoding entries when volumes are packed, decoding them when they are read.

May import the codec contracts and the pure nouns of storage. Must not touch files.
"""
