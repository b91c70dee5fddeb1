"""Printed equations of the papers, each with a verdict that a machine finds."""
