"""The Admin REST API, HTTP lookup and schemas: one file a resource, and a table of routes with their permissions.

Handlers are plain functions of the core; ``HttpServer`` alone knows sockets and waits for the disk. Importing this
costs what aiohttp costs, so the daemon imports it when the binary port serves already.
"""

from pulsarbox.server.http.framework.server import HttpServer

__all__ = ["HttpServer"]
