"""Message commands (`produce`, `consume`, `peek`, `tap`) and their shared options, formats and loops.

May import `cli.common`, `cli.connect`, `cli.envelope`, client and protocol, and from the broker only the property names
and filters of dead letters. Must not import the server.
"""
