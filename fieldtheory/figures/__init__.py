"""Printed figures of the papers, redrawn: one module per paper; `width` shows finite networks.

For each figure a function computes the plotted numbers and another draws them, so that the numbers
can be used without the picture; their method ``curves`` lists what a csv file beside it holds:

>>> from fieldtheory.figures import f25
>>> numbers = f25.fig3(depth=5)
>>> numbers.kernels.shape
(3, 6)
>>> [curve.label for curve in numbers.curves() if curve.panel == "b"]
['rho = 1', 'rho = 0.3', 'rho = 0.1']
"""
