"""Functions with kinks and jumps: what is left of them given noise, or another signal."""
