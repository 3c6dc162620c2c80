"""Members of an ensemble on other machines: the protocol between a box and its replicas, as values. Pure.

`frames` and `handshake` define what is sent, `remote_member` is the side of the box, `replica_requests` that of the
replica. May import the modules of the ensemble; sockets and threads are in `server/replica`.
"""
