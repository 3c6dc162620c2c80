"""Where values of settings come from: pulsarbox.toml, Pulsar's properties files, and environment variables.

May import the settings table. Must not decide which source wins: that is `config.load`.
"""
