"""Transport of the client: sockets, frames, HTTP, one event loop without threads, and reconnection.

May import the protocol and the errors of the client. Must not import producers or consumers: they attach themselves to
a connection, which passes frames to them.
"""
