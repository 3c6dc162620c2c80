"""The Textual dashboard, `pulsarbox top`: a process apart that asks a box over its Admin API.

`screens` show, `widgets` draw, `actions` change things. May import client and protocol. Must not import the broker or
the server.
"""
