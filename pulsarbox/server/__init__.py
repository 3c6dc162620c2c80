"""The asyncio shell around the core: sockets, timers, threads, signals and HTTP.

`serving` composes a box and `daemon` runs one as a process; `network`, `process`, `recording`, `http`, `live` and
`metrics` hold the rest. May import everything but client, cli, tui and spark. Must not duplicate decisions of the core.
"""
