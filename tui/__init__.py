"""The Textual dashboard: ``pulsarbox top``, a process of its own that asks a box over its Admin API."""
