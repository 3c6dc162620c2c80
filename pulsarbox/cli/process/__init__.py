"""Commands about a box's process and data directory: start, stop, status, doctor, storage, the dashboard.

May import config, client, `storage.inspection` and, inside functions, the server and the dashboard. Must not import the
broker's topics or open the data directory of a running box.
"""
