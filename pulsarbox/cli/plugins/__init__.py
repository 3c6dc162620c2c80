"""The `plugins` command group: list, check, benchmark and create plugins.

May import `pulsarbox.plugins` and `cli.common`. Must not load a plugin in this process before probing it in a child.
"""
