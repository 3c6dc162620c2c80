"""The built-in routers: from a message to the number of a partition.

May import the router contract. Must not keep state outside the router object or perform I/O.
"""
