"""The shell around the core: sockets, timers, threads and HTTP; the only room of the daemon that knows asyncio."""
