"""Functions with waves that are short against the signals."""
