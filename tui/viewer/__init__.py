"""Contents of one message: documents with folding, text, bytes, search, differences and copies, without widgets.

All of it is pure. Anything that grows with the size of a message is a generator, which the caller advances for some
milliseconds at a time, or is computed only for the visible lines.
"""
