"""What `/metrics` tells: a table of metrics, rows of values, and the text format of Prometheus.

Names, labels and types are those of Pulsar 4.2 wherever it has the metric; ours begin with ``pulsarbox_``.
"""
