"""The commands of the container image that Apache Pulsar's image has: ``pulsar``, ``pulsar-admin``, ``pulsar-client``.

May import `pulsarbox.cli`, config and client. Must not serve a box: ``pulsar standalone`` becomes ``pulsarbox start``.
"""
