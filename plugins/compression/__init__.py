"""The built-in codecs: those of Pulsar's protocol."""
