"""Commands that move messages (`produce`, `consume`, `peek`, `tap`) and the options, formats and loops that they share.

May import `cli.common`, `cli.connect`, `cli.envelope`, client and protocol, and from the broker only the words of dead
letters and their filters. Must not import the server.
"""
