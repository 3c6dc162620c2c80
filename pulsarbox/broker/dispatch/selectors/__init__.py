"""Selectors: which consumer of a Key_Shared subscription owns which keys.

May import `plugins` contracts and protocol values. Must not know about entries, permits or connections.
"""
