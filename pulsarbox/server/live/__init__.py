"""Live views of the box: what each shows, and how rows are chosen, ordered and made."""
