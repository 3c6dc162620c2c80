"""Cluster-wide metadata of the Admin API: clusters, failure domains, isolation policies, bookie racks, bundle quotas.

A box stores, returns and deletes it as Pulsar does; a single broker applies little of it. May import the storage
interface. Must not import topics.
"""
