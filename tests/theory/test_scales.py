"""One ρ and γ = 1 as in F25, or what was asked for, or what the network has."""

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.theory import notation as sym
from tests.montecarlo.test_family import LinearMapBeside

RHO, GAMMA = sym.branch_scale(), sym.skip_scale()
RHOS, GAMMAS = ([symbol(l) for l in (1, 2)] for symbol in (sym.branch_scale, sym.skip_scale))
c = sp.Symbol("c", positive=True)


def net(**scales):
    return ft.ResidualNetwork(depth=2, **scales)


@pytest.mark.parametrize(
    "arguments, rho, gamma",
    [
        ({"depth": 2}, [RHO, RHO], [1, 1]),
        ({"depth": 2, "branch_scale": "per layer"}, RHOS, [1, 1]),
        ({"depth": 2, "skip_scale": "per layer"}, [RHO, RHO], GAMMAS),
        ({"depth": 2, "skip_scale": "symbol"}, [RHO, RHO], [GAMMA, GAMMA]),
        ({"depth": 2, "branch_scale": 0.3, "skip_scale": 1.0}, [sp.Rational(3, 10)] * 2, [1, 1]),
        ({"depth": 2, "branch_scale": c / 2, "skip_scale": 0}, [c / 2, c / 2], [0, 0]),
        ({"network": net(branch_scale=0.3)}, [RHO, RHO], [1, 1]),
        ({"network": net(branch_scale=[0.3, 0.3])}, [RHO, RHO], [1, 1]),
        ({"network": net(branch_scale=[0.3, 0.1])}, RHOS, [1, 1]),
        ({"network": net(skip_scale=0.9)}, [RHO, RHO], [GAMMA, GAMMA]),
        ({"network": net(skip_scale=[1, 0.9])}, [RHO, RHO], GAMMAS),
        ({"network": net(branch_scale=0.5, skip_scale=0)}, [RHO, RHO], [0, 0]),
        ({"network": ft.FeedForwardNetwork(depth=2)}, [1, 1], [0, 0]),
        ({"network": net(branch_scale=[[0.3], [0.4]])}, [RHO, RHO], [1, 1]),
        ({"network": net(skip_scale=[[0.0], [1.0]])}, [RHO, RHO], [GAMMA, GAMMA]),
        ({"network": net(branch_scale=[[0.3, 0.4], [0.4, 0.3]])}, RHOS, [1, 1]),
        ({"network": net(skip_scale=0.9), "skip_scale": "per layer"}, [RHO, RHO], GAMMAS),
    ],
)
def test_scales_that_are_written(arguments, rho, gamma):
    theory = ft.derive(**arguments)
    assert [list(theory.scales[name]) for name in ("branch_scale", "skip_scale")] == [rho, gamma]
    K = theory.network_action.covariance
    for l in (1, 2):
        assert K[l, l - 1] == sp.expand(gamma[l - 1] * K[l - 1, l - 1])
        if theory.activation is None:
            observable = sym.WEIGHT**2 * sym.phi(sym.signal(l - 1)) ** 2 + sym.BIAS**2
            found = theory.network_action.observables[l]
            assert sp.expand(found - rho[l - 1] ** 2 * observable) == 0


NETWORKS = {
    "paper": {"branch_scale": 0.3},
    "one γ": {"branch_scale": 0.3, "skip_scale": 0.9},
    "feed-forward": {"branch_scale": 1.0, "skip_scale": 0.0},
    "per layer": {"branch_scale": [0.3, 0.5], "skip_scale": [0.9, 0.2]},
}


@pytest.mark.slow_but(3)
@pytest.mark.parametrize("scales", NETWORKS.values(), ids=NETWORKS)
def test_numbers_are_those_of_the_network(scales):
    """The theory of a network, and the one with all symbols, in numbers."""
    each = ft.derive(depth=2, branch_scale="per layer", skip_scale="per layer")
    for theory in (ft.derive(net(**scales)), each):
        G12 = theory.lambdify("G12")(net(**scales), 0.05)
        np.testing.assert_allclose(G12, ft.solve(net(**scales), 0.05).G12, rtol=1e-12)


def test_a_family_without_these_scales():
    assert ft.derive(LinearMapBeside(depth=2)).scales == {}
