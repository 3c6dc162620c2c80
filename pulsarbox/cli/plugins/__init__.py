"""The `plugins` command group: listing, checking, measuring and creating plugins.

May import `pulsarbox.plugins` and `cli.common`. Must not load a plugin in this process before it was probed in a child.
"""
