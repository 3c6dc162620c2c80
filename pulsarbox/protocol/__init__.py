"""The binary protocol of Apache Pulsar 4.2: bytes to values and back, without a socket or a clock.

Read in this order: ``frames`` cuts the stream, ``commands`` names what a frame says, ``replies`` says it back,
``metadata`` and ``batch`` open what a producer sent, ``receipts``, ``delivery`` and ``sends`` are the same things
again for the three commands that pass a hundred thousand times a second.
"""
