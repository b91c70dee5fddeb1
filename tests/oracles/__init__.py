"""Independent oracles: brute-force numbers that owe nothing to the package.

Conventions shared by every module here. The network is

    h^(0) = W_in x + b_in
    h^(l) = gamma_l h^(l-1) + rho_l [W^(l) phi(h^(l-1)) + b^(l)],   l = 1..L
    y     = W_out phi(h^(L)) + b_out

and the fields are the residual kernels C^(0..L+1), stored in arrays of length L + 2. Several
inputs have one field for each entry of `recursion.entries(P)`: the variances first, then the
covariances i < j. All Hessians are divided by N and all propagators multiplied by N.
"""
