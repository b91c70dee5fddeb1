"""Inference with infinite networks: their kernels as functions of inputs."""
