"""The broker core: pure state machines that take values and the time as arguments and return values.

The root holds the inputs and outputs of the core (`broker`, `timers`) and the function that builds it (`composition`);
each subject has a package below. May import storage, plugins, protocol and the
modules under them. Must not import server, client or cli, and imports no event loop, socket, thread, clock or random
source.
"""
