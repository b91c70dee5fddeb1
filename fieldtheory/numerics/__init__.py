"""Recursions over layers. The averages come from the symbolic layer; here is only structure.

`solution` holds `solve` and the result it returns, with its table of fields (`fields`) and its
files (`storage`). The folders, imports go down this list:

    several_inputs   1/N of several inputs: Hermite coefficients of pairs, or sampled paths
    tangent          tangent kernels, by what is trained
    pair_maps        infinite width for many pairs of inputs
    one_input        fluctuations of one input
    neurons          1/N and 1/N² from neurons that interact through their mean
    infinite_width   averages of a layer, kernels, responses, kernels beyond float64
"""
