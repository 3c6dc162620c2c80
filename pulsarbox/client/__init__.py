"""A thin synchronous Pulsar client for our own tools: blocking sockets, one loop, no threads.

``Client`` opens producers and consumers. Everything happens in the calls that are made: while none is made, nothing is
read, and the broker's keep-alive is not answered. So whoever waits for something else waits in ``Client.turn``, which
also watches other file descriptors.
"""
