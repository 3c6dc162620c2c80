"""Selectors: which consumer of a Key_Shared subscription has which key."""
