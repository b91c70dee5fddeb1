"""Draws of finite networks: forward and backward passes, samplers, moments and their plan."""
