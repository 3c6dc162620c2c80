"""The built-in routers, which select the partition of a message.

May import the router contract. Must not keep state outside the router object or perform I/O.
"""
