"""What may be set for a namespace or a topic: names, JSON, endpoints. Server, command line and documents go by it."""
