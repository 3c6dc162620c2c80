"""Declarations: tenants, namespaces, topics and what belongs to them, written in YAML.

Pure, from the text of a file to the steps that make a broker equal to it. ``yaml_document`` parses within bounds,
``declaration_parser`` validates, ``present_state`` reads a broker through calls of the Admin API, ``planner`` compares
both, ``step_execution`` carries steps out, and ``exported_document`` writes what is there. Calls are values: a
generator yields each one and receives its reply, so commands (over HTTP) and a starting box (in process) share all.

May import protocol, names, config and PyYAML. Must not import the broker, the server, the client, click, an event loop,
files or sockets.
"""
