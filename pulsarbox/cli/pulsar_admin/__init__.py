"""``pulsarbox admin``: a drop-in pulsar-admin without Java.

``tables/`` has one file per group, which defines each command, its options, its Admin API requests and its output
format. The rest of this package interprets these tables.
"""
