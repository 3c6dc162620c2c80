"""Commands for the process and configuration of a box: start, stop, status, doctor, config, the dashboard.

May import config, client, `storage.inspection` and, inside functions, the server and the dashboard. Must not import
the broker's topics or open the data directory of a running box.
"""
