"""The pipelines that come along: rollups, dead letters worked on, topics filled from files, and the reverse."""
