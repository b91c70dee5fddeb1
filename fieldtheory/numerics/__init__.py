"""Recursions over layers. The entries come from the symbolic layer; here is only structure."""
