"""Commands of Apache Pulsar's image in our container image: ``pulsar``, ``pulsar-admin``, ``pulsar-client``.

May import `pulsarbox.cli`, config and client. Must not serve a box: ``pulsar standalone`` becomes ``pulsarbox start``.
"""
