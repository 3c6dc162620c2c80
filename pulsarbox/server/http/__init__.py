"""The HTTP port: the Admin REST API, HTTP lookup, schemas, metrics and the live views.

`framework` serves requests, `resources`, `policies`, `statistics` and `box` implement the endpoints, and `route_table`
connects them. May import the broker and the rest of the server. Must not import client or cli.
"""

from pulsarbox.server.http.framework.server import HttpServer

__all__ = ["HttpServer"]
