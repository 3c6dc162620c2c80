"""Schema definitions of all types: parsing, compatibility, and encoding and decoding of values.

Work is counted and bounded in `steps`. Must not import the broker or a codec of message bodies.
"""
