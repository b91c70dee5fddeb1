"""Residual blocks of any kind, measured: the correlators that tune them to criticality."""
