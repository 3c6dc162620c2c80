"""All endpoints of the Admin API, asked of a box and of a Pulsar broker in the same states, and their answers compared.

The answers of Pulsar are kept as facts in ``tests/data``, so that tests compare a box with them without a broker. Run
by hand: ``python -m tests.endpoints --help``. May import the endpoint table and the tools of the tests. Must not import
the rest of the box: it is asked over HTTP.
"""
