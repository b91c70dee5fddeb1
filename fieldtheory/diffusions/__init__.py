"""Deep networks with small parameters and their limit, a diffusion: solved and simulated (PF)."""
