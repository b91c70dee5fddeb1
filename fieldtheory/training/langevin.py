"""Langevin dynamics as a torch optimiser."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from fieldtheory import validation
from fieldtheory.networks.parameters import named_arguments


class Langevin(torch.optim.Optimizer):
    """Langevin dynamics whose stationary law is the posterior of parameters with Gaussian priors.

    With the loss ℓ, the temperature T and parameters θ of prior variance v, one step is

        θ ← θ − (h v/T) (∇ℓ + (T/v) θ) + √(h v/2) (ξ_n + ξ_{n+1}),   ξ standard normal:

    gradient descent with the learning rate h v/T, the weight decay T/v, and noise. Its law for
    small h is exp(−ℓ(θ)/T) N(θ; 0, v); for ℓ = ½ Σ (y − f)² the posterior with noise variance T
    (F25 section IV). Each ξ enters two steps (B. Leimkuhler, C. Matthews, Appl. Math. Res. Express
    2013, 34), which is exact at every stable h if ℓ is quadratic and else wrong by O(h²). Stable if
    h (1 + λ/T) < 2 for all eigenvalues λ of the tangent kernel in the "ntk" parametrisation, those
    of ``ft.tangent_kernels(network, K0).tangent_kernels[-1]`` at infinite width.

    ℓ is the sum over all samples: of their mean, or of a batch, it is another posterior that is
    sampled, which `train` refuses.

    Parameters
    ----------
    priors : iterable of (tensor, float)
        Parameters with their prior variances, such as ``torch_module(network).priors()``.
    step_size : float
        h > 0.
    temperature : float
        T > 0.
    seed : int
        Seed of the noise, >= 0.

    Examples
    --------
    >>> theta = torch.nn.Parameter(torch.zeros(400000, dtype=torch.float64))
    >>> sampler = Langevin([(theta, 4.0)], step_size=0.3, temperature=1.0)
    >>> for _ in range(40):
    ...     sampler.zero_grad()
    ...     (theta**2 / 2).sum().backward()                # one datum y = 0
    ...     sampler.step()
    >>> round(theta.var().item(), 2)                       # 1/(1/4 + 1)
    0.80
    """

    @named_arguments
    def __init__(
        self,
        priors: Iterable[tuple[torch.nn.Parameter, float]],
        step_size: float,
        temperature: float,
        seed: int = 0,
    ) -> None:
        groups = [
            {"params": [theta], "variance": validation.positive("a prior variance", v)}
            for theta, v in priors
        ]
        settings = {
            "step_size": validation.positive("step_size", step_size),
            "temperature": validation.positive("temperature", temperature),
            "seed": validation.integer("seed", seed, 0),
        }
        super().__init__(groups, settings)
        self.generator = torch.Generator().manual_seed(settings["seed"])

    def step(self, closure: Any = None) -> Any:
        """One step of all parameters; ``closure`` is called first, as torch has it."""
        loss = None if closure is None else closure()
        with torch.no_grad():
            for group in self.param_groups:
                h, variance, T = (group[name] for name in ("step_size", "variance", "temperature"))
                for theta in group["params"]:
                    kept = self.state[theta]
                    before = kept["noise"] if kept else self._normals(theta)
                    kept["noise"] = self._normals(theta)
                    noise = before + kept["noise"]
                    theta.mul_(1 - h).add_(noise, alpha=(h * variance / 2) ** 0.5)
                    if theta.grad is not None:
                        theta.sub_(theta.grad, alpha=h * variance / T)
        return loss

    def _normals(self, theta: torch.Tensor) -> torch.Tensor:
        drawn = torch.randn(theta.shape, generator=self.generator, dtype=theta.dtype)
        return drawn.to(theta.device)
