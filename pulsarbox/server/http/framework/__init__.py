"""Requests and responses: connections, routes, authentication, authorization, audit, streams, cooperative work.

May import the broker's security package and aiohttp's parser. Must not import a resource: the route table connects
both.
"""
