"""Commands for stored data: `storage`, `backup`, `restore`, and reading the directory of a stopped box.

May import `storage.inspection` and `storage.backup` inside functions. Must not write to a data directory that a broker
holds.
"""
