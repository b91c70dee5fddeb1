"""Solutions to many digits: one recursion over layers, in mpmath or another arithmetic."""
