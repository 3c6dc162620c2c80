"""Schema definitions of every type: parsing, encoding and decoding of values, and compatibility.

Work is counted in `steps` and bounded. Must not import the broker or a codec of message bodies.
"""
