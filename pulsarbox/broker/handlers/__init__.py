"""What the broker does with each command: one function a command, one file a subject."""
