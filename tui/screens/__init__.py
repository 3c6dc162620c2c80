"""The screens, a file each; ``pulsarbox.tui.app.SCREENS`` is the list of those that have a key."""
