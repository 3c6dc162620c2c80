"""Sources of settings: pulsarbox.toml, Pulsar's properties files, and environment variables.

May import the settings table. Precedence of sources is the business of `config.load`.
"""
