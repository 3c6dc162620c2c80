"""Administrative commands, one module per group: tenants, namespaces, topics, subscriptions, schemas, quotas, jobs.

May import `cli.common`, `cli.connect`, client and protocol. Must not import the server, the broker or textual at
import time.
"""
