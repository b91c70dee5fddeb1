"""Finite width from neurons that interact through their mean: the orders 1/N and 1/N² in O(L)."""
