"""Model of the box, built from the frames at its boundary and from the batches on its disk.

May import values of the product: the protocol, policies and records. Must not change the box.
"""
