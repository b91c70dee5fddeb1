"""The symbolic theory of residual networks with small parameters and their diffusion (PF)."""
