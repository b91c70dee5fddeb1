"""The object by which networks of small parameters and their diffusions register."""

from fieldtheory.families import Family

_NETWORKS = "samples*10 seed jobs directory"

FAMILY = Family(
    network="fieldtheory.diffusions.diffusion_network:DiffusionNetwork",
    room="fieldtheory.diffusions.diffusion_names",
    functions={
        "derive": "fieldtheory.diffusions.diffusion_limit.diffusion_derivation:derive_diffusion",
        "solve": "fieldtheory.diffusions.diffusion_solution:solve_diffusion",
        "simulate": "fieldtheory.diffusions.diffusion_simulation:simulate_diffusion",
        "compare": "fieldtheory.diffusions.diffusion_comparison:compare_diffusion",
    },
    names=(
        "DiffusionDerivation",
        "DiffusionEnsemble",
        "DiffusionNetwork",
        "DiffusionSolution",
        "FunctionSamples",
        "OutputDistances",
        "ParameterLaw",
    ),
    fields="fieldtheory.diffusions.diffusion_result:DIFFUSION_FIELDS",
    torch="fieldtheory.diffusions.torch_diffusion:TorchDiffusion",
    command="fieldtheory.diffusions.diffusion_command:diffusion",
    papers={"PF": ("PMLR 108 (AISTATS 2020), arXiv:1905.11065", "1–17")},
    claims="fieldtheory.diffusions.pf_claims",
    pictures={"pf": "fieldtheory.diffusions.pf_figures"},
    # PF has 10,000 networks of each kind, ten times as many as others.
    figures={
        "pf.fig1": _NETWORKS,
        "pf.fig2": _NETWORKS,
        "pf.fig3": _NETWORKS,
        "pf.fig4": _NETWORKS,
        "pf.fig5": "seed jobs directory quick",
    },
    figure_notes="pf is Peluchetti, Favaro (2020), with 10 times --samples functions of each kind, "
    "as many as in the paper; that takes a minute or two each, and the same command goes on where "
    "it was stopped. pf.fig5 trains networks, as f25.fig7 does.",
)
