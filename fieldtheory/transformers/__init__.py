"""Transformers: attention and MLPs as a chain of Gram matrices, with heads as units."""
