"""Storage: managed ledgers, cursors, volumes, the engine interface and its engines."""
