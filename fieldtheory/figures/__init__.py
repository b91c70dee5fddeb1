"""Printed figures of the papers, redrawn: one module per paper.

For each figure a function computes the plotted numbers and another draws them, so that the numbers
can be used without the picture:

>>> from fieldtheory.figures import f25
>>> numbers = f25.fig3(depth=5)
>>> numbers.kernels.shape
(3, 6)
"""
