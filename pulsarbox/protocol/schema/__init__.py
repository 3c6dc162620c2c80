"""What a schema says: definitions of every type, and which of them may follow one another."""
