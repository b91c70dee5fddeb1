"""Finite width for one input: propagators, vertices, loops, the law of an output."""
