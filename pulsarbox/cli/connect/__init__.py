"""Connection of commands to a broker: service URLs, contexts, credentials, tokens and the Admin API client.

May import client, config, the token provider of `broker.security`, and `server.process` for the runtime file of a
running box. Must not print results; `cli.common.output` does.
"""
