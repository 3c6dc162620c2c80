"""Policies of namespaces and topics: the endpoints that follow from the table, and those with ways of their own."""
