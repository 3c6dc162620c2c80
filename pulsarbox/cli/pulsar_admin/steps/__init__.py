"""Commands of `pulsarbox admin` that need more than one request, one file per group.

The command table names them as `run`. May import the session and values of `pulsar_admin`. Must not parse options.
"""
