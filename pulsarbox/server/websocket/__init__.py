"""Pulsar's WebSocket API on the HTTP port: producers, consumers and readers, with JSON messages.

Each socket has a connection to the broker inside the process, which sends the commands of the binary protocol; the
broker treats it as any other client. `parameters`, `endpoint`, `message_json`, `redelivery_schedule` and
`entry_messages` are pure. May import the broker's connection, the plugins, the protocol and `http.framework`. Must not
decide anything about topics, and must not import client or cli.
"""
