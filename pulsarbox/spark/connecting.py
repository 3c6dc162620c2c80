"""Connections to a broker, as a reach says. Nothing of pyspark."""

from pulsarbox.client.admin import Admin
from pulsarbox.client.client import Client
from pulsarbox.spark.segments import Reach, hosts_of


def client_of(reach: Reach) -> Client:
    """A client of the Pulsar protocol; nothing is connected yet. Raises NotConnected for certificates of no use."""
    hosts, secure = hosts_of(reach.service_url, 6650)
    return Client(hosts, reach.seconds, secure=secure, credentials=reach.credentials)


def admin_of(reach: Reach, seconds: float | None = None) -> Admin:
    """A client of the Admin API; nothing is connected yet. ``seconds``: how long an answer is waited for."""
    hosts, secure = hosts_of(reach.admin_url, 8080)
    found = reach.credentials if reach.admin_credentials is None else reach.admin_credentials
    return Admin(hosts, reach.seconds if seconds is None else seconds, secure=secure, credentials=found)
