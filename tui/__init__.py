"""The Textual dashboard, `pulsarbox top`: a separate process that queries a box over its Admin API.

`screens` show data, `widgets` draw, `actions` change the box. May import client and protocol. Must not import the
broker or the server.
"""
