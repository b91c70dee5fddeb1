"""Cumulants of neurons that interact through their mean: counted, recursed and checked."""
