"""Backups of a box under load: each is restored, and holds one instant of what the clients did."""
