"""The flow of infinite depth in symbols."""

import sympy as sp

from fieldtheory.theory import depth_flow
from fieldtheory.theory import notation as sym
from fieldtheory.theory.depth_flow import P, Q, R, step_rate
from fieldtheory.theory.elementary_averages import K_XX, K_XY, K_YY, layer_averages


def relu(x):
    return sp.Max(0, x)


def covariance_rate(activation):
    """The rate of a covariance r of variances p and q."""
    covariance = layer_averages(activation=activation).covariance
    return step_rate(covariance.subs({K_XX: P, K_YY: Q, K_XY: R}, simultaneous=True))


def test_rate_of_relu_is_that_of_the_paper():
    """SR eq. (8), σ_b² + (σ_w²/2)(1 + f(c)/c) q, with f of (4)."""
    c = R / sp.sqrt(P * Q)
    f = (sp.sqrt(1 - c**2) - c * sp.acos(c)) / sp.pi
    printed = sym.BIAS**2 + sym.WEIGHT**2 / 2 * (1 + f / c) * R
    ours = covariance_rate(relu).doit()
    for values in ({P: 1, Q: 2, R: 0.5}, {P: 0.3, Q: 0.3, R: -0.29}):
        point = values | {sym.WEIGHT: 1.3, sym.BIAS: 0.4}
        assert abs(float((ours - printed).subs(point))) < 1e-14


def first_change(field, variables, changes, step):
    """The rates of what the modified flow adds to a flow, to first order in the step."""
    moved = sp.Matrix(field).jacobian(sp.Matrix(variables)) * sp.Matrix(changes)
    modified = depth_flow.modified_flow(field, variables, step)
    return [sp.expand(m + f - v) for m, f, v in zip(moved, modified, field, strict=True)]


def test_first_change_is_that_of_steps():
    """Steps of the flow y' = y² + θ, θ' = y θ, and of a solution q + h e to second order in h."""
    y, theta, h, t = sp.symbols("y theta h t", real=True)
    field, variables = [y**2 + theta, y * theta], [y, theta]
    changes = sp.symbols("e_y e_theta")
    rates = first_change(field, variables, changes, h)
    q = [sp.Function(name)(t) for name in ("q", "p")]
    e = [sp.Function(name)(t) for name in ("d", "c")]
    there = {y: q[0], theta: q[1]}
    flow = {f.diff(t): v.subs(there) for f, v in zip(q, field, strict=True)}

    def along(expression):
        """d/dt with the flow and the rates of the change put in."""
        known = there | dict(zip(changes, [h * f for f in e], strict=True))
        moves = {f.diff(t): sp.expand(r.subs(known) / h) for f, r in zip(e, rates, strict=True)}
        return sp.expand(expression.diff(t).subs(moves | flow))

    for index in range(2):
        solution = q[index] + h * e[index]
        taylor = solution + h * along(solution) + h**2 / 2 * along(along(solution))
        start = {y: q[0] + h * e[0], theta: q[1] + h * e[1]}
        stepped = solution + h * field[index].subs(start)
        difference = sp.expand(taylor - stepped)
        assert difference.coeff(h, 0) == difference.coeff(h, 1) == difference.coeff(h, 2) == 0


def test_a_displacement_moves_as_the_first_change():
    y, theta = sp.symbols("y theta")
    field, variables = [sp.sin(y) + theta, y * theta], [y, theta]
    changes = sp.symbols("e_y e_theta")
    rates = first_change(field, variables, changes, depth_flow.STEP)
    w = [
        depth_flow.displacement(e, depth_flow.STEP, v) for e, v in zip(changes, field, strict=True)
    ]
    moved = sp.Matrix(field).jacobian(sp.Matrix(variables)) * sp.Matrix(w)
    assert sp.simplify(moved - sp.Matrix(rates)) == sp.zeros(2, 1)
