"""Commands that take more than one request with one answer: a module a group, named by ``run`` in the tables."""
