"""The object by which transformers register."""

from fieldtheory.families import Family

FAMILY = Family(
    network="fieldtheory.transformers.transformer_network:TransformerNetwork",
    room="fieldtheory.transformers.transformer_names",
    functions={
        "derive": "fieldtheory.transformers.transformer_derivation:derive_transformer",
        "compare": "fieldtheory.montecarlo.comparison.extrapolation:compare",
        "solve": "fieldtheory.transformers.transformer_solution:solve_transformer",
        "simulate": "fieldtheory.transformers.transformer_simulation:simulate_transformer",
    },
    names=("TransformerNetwork", "TransformerSolution"),
)
