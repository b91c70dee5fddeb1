"""Recursions over layers. The entries come from the symbolic layer; here is only structure.

`solution` is the door, with the results, their fields and files beside it, and the recursions of
infinite width (`kernels`, `tangents`). Imports go down here:

    several_inputs   finite width for several inputs
    tangent          tangent kernels, by what is trained
    correlators      connected correlators of pairs of inputs
    pair_maps        infinite width for many pairs of inputs
    one_input        finite width for one input
    infinite_width   mean field, responses, and both beyond float64
    overflow         kernels and tangent kernels that leave float64
    observables      products of features of two inputs
    kinks            features with kinks and jumps
    neurons          1/N and 1/N² from neurons that interact through their mean
    layer_averages   the averages of one layer
"""
