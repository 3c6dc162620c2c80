"""How entries are read: in place where the data directory is at hand, else over the network."""
