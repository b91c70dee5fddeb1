"""Recursions over layers. The entries come from the symbolic layer; here is only structure.

`solution` is the door, with the results, their fields and files beside it. Imports go down here:

    several_inputs   finite width for several inputs
    tangent          tangent kernels, by what is trained
    correlators      connected correlators of pairs of inputs
    pair_maps        infinite width for many pairs of inputs
    overflow         kernels and responses beyond float64
    one_input        finite width for one input
    infinite_width   kernels, responses, tangent kernels
    observables      products of features of two inputs
    kinks            features with kinks and jumps
    neurons          1/N and 1/N² from neurons that interact through their mean
    layer_averages   the averages of one layer
"""
