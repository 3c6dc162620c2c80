"""Command handlers: one function per binary protocol command, one file per subject.

The command table names them. May import every room of the broker. Must not hold state of their own: state belongs to
the connection, the topic or the subscription.
"""
