"""``pulsarbox admin``: the words of pulsar-admin, without a Java process for each of them.

``tables/`` says what there is: a file for each group, and in it each command, its options, what it asks of the Admin
API and how it prints the answer. The rest of this package reads that.
"""
