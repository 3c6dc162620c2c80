"""Commands of `pulsarbox admin` that need more than one request, one module per group.

The tables refer to them by `run`. May import the session and values of `pulsar_admin`. Must not parse options.
"""
