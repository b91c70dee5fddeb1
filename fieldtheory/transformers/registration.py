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
    # Their statements are in words.
    papers={
        "DCL": ("arXiv:2103.03404, abstract and introduction", ""),
        "SPT": ("arXiv:2206.03126, abstract and introduction", ""),
    },
    claims="fieldtheory.transformers.collapse_claims",
    pictures={"transformers": "fieldtheory.transformers.transformer_figures"},
    figures={"transformers.layers": "", "transformers.tokens": ""},
    figure_notes="transformers.* show what attention and MLPs add, and how alike tokens become.",
)
