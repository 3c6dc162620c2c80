"""Client connections: their commands, their output, and producers and consumers that are being opened.

May import the security, the handlers and the types of topics and subscriptions. Must not read sockets: frames and
the time are arguments.
"""
