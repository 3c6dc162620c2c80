"""The HTTP port: the Admin REST API, HTTP lookup, schemas, metrics and the live views.

`framework` serves requests, `resources`, `statistics` and `box` answer them, and `route_table` joins the two. May
import the broker and the rest of the server. Must not import client or cli.
"""

from pulsarbox.server.http.framework.server import HttpServer

__all__ = ["HttpServer"]
