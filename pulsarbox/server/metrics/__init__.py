"""The metrics of `/metrics`: a table of metrics, rows of values, and the Prometheus text format.

Names, labels and types follow Pulsar 4.2 for its metrics; additional ones begin with ``pulsarbox_``.
"""
