"""The price list of docs/developers/house.md: lines of every feature, and who asks for it.

python -m tests.prices        writes the lines into the page
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "developers" / "house.md"
HEAD = "| feature | lines | tests | who asks for it |"

# Feature: files of the package, of tests, who asks. A file belongs to the first that names it.
FEATURES = {
    "proven intervals and certificates": (
        "precision/enclosed* precision/enclosures* precision/hermite.py precision/majorants* "
        "precision/ball* precision/certificates* scaling/enclosed_optima*",
        "precision/test_en* precision/test_ball* precision/test_certif* precision/test_hermite.py "
        "precision/test_majorants* scaling/test_enclosed* tools/*",
        "high_precision.md; `verify`; claims of F25 about ρ*",
    ),
    "tens of digits": (
        "precision/* numerics/precise_solution*",
        "precision/* numerics/test_precise* test_exact*",
        "the purpose of the package; high_precision.md; every claim's second route",
    ),
    "diagrams and Feynman pictures": (
        "theory/diagrams/* plotting/feynman*",
        "theory/diagrams/* theory/test_diagram* plotting/test_feynman*",
        "notebook 04; derivations/finite_width",
    ),
    "LaTeX that breaks its lines": (
        "theory/typesetting/* theory/appendix*",
        "theory/typesetting/* theory/test_appendix* rendering/*",
        "the purpose of the package: LaTeX of the Hessian; appendix.md",
    ),
    "action, saddle point, Hessian, formulas": (
        "theory/* compiling/*",
        "theory/* compiling/*",
        "the purpose of the package; F25 eqs. (1)-(131); README",
    ),
    "posterior under labels of order N": (
        "inference/tilt* inference/linear_posterior* numerics/several_inputs/gain_correlators*",
        "inference/test_tilt* inference/test_linear_posterior* oracles/labelled*",
        "tilted_posterior.md; F25's outlook",
    ),
    "posterior to order 1/N and responses after labels": (
        "inference/network_posterior* inference/fluctuating* inference/labelled* "
        "inference/learned* montecarlo/sampling/linear_networks* "
        "montecarlo/sampling/gain_covariances* "
        "training/moved_inputs*",
        "inference/test_network* inference/test_learned* inference/test_fluct* "
        "montecarlo/sampling/test_linear* montecarlo/sampling/test_gain*",
        "posterior.md, response_after_training.md; F25 Fig. 7",
    ),
    "kernels of data, spectra, Gaussian processes": (
        "inference/* sklearn.py numerics/pair_maps/*",
        "inference/* test_sklearn* numerics/pair_maps/*",
        "SR sections 3 to 5 and Figs. 2 to 5; scikit_learn.md",
    ),
    "averages over Gaussian signals": (
        "averages/*",
        "averages/* test_accuracy* test_random_activations* piecewise*",
        "every number",
    ),
    "networks, activations, schedules": (
        "networks/* validation.py families.py",
        "networks/* test_validation*",
        "the purpose of the package; SR eq. (2); own_activation.md",
    ),
    "blocks: a Markov chain of Gram matrices": (
        "numerics/markov/* montecarlo/sampling/gram_chain* figures/blocks*",
        "grams/* oracles/block* numerics/markov/*",
        "transformer_blocks.md, audit_a_model.md",
    ),
    "transformers: attention as a chain": (
        "transformers/*",
        "transformers/* oracles/transformers*",
        "transformers.md; claims of DCL, SPT",
    ),
    "several inputs at order 1/N": (
        "numerics/several_inputs/*",
        "numerics/several_inputs/* oracles/*pair* oracles/*path*",
        "F25 section IV; several_inputs.md",
    ),
    "one input at orders 1/N and 1/N²": (
        "numerics/neurons/* numerics/one_input* numerics/neuron_paths*",
        "numerics/neurons/* numerics/one_input/*",
        "second_order.md; PDLT-B eq. (B.26)",
    ),
    "variability of the data": (
        "numerics/variable_data*",
        "numerics/test_variable*",
        "variable_data.md; F25 eq. (17)",
    ),
    "tangent kernels": (
        "numerics/tangent/* numerics/infinite_width/tangents*",
        "numerics/tangent/* numerics/test_tangent*",
        "SR eq. (9), section 5; tangent_kernel.md",
    ),
    "kernels, responses, files of results": (
        "numerics/*",
        "numerics/* test_files* old_files/* test_every_result* rounding* families* test_families* "
        "oracles/*",
        "the purpose of the package; F25 sections II, III",
    ),
    "optimal scaling, maximum entropy": (
        "scaling/*",
        "scaling/*",
        "F23, F25 section III.3; optimal_scaling.md",
    ),
    "limits of infinite depth": (
        "limits/*",
        "limits/*",
        "SR sections 3, 4, Lemma 5; deep_limit.md",
    ),
    "critical networks, closure, gains": (
        "criticality/*",
        "criticality/*",
        "PDLT-B; critical_networks.md; choose_gains.md",
    ),
    "comparison of theory and simulation": (
        "montecarlo/comparison/* plotting/theory_and_simulation*",
        "montecarlo/comparison/*",
        "the purpose of the package; finite_networks.md",
    ),
    "simulation of networks and responses": (
        "montecarlo/*",
        "montecarlo/*",
        "F25 Figs. 1 to 6; F23 Figs. 1 to 5",
    ),
    "measured blocks": (
        "measured_blocks/*",
        "measured_blocks/*",
        "measure_a_block.md; the audit of branches",
    ),
    "audit of torch models": (
        "audits/*",
        "audits/*",
        "audit_a_model.md, audited_models.md",
    ),
    "training in torch, Langevin dynamics": (
        "training/* figures/f25_training* figures/trainer* figures/sr_training*",
        "training/*",
        "F25 Fig. 7; SR Tables 1, 2; train_networks.md",
    ),
    "data": ("data/*", "data/*", "F25 Figs. 6, 7; your_data.md"),
    "diffusions": (
        "diffusions/*",
        "diffusions/*",
        "PF; diffusions.md",
    ),
    "claims and verdicts": (
        "literature/*",
        "literature/* test_broken_models* mutants*",
        "the purpose of the package; verification.md; four papers",
    ),
    "figures of the papers and the gallery": (
        "figures/* plotting/*",
        "figures/* plotting/*",
        "F25, F23, PDLT-B, SR; docs/gallery",
    ),
    "main job and its report": ("report/*", "report/*", "`make run`; README"),
    "sweeps": ("sweeps/*", "sweeps/*", "sweeps.md; F25 Fig. 4"),
    "the shell": ("cli/*", "cli/*", "shell.md; README"),
    "the package itself": ("*", "*", "every page"),
}


def files(folder):
    """All files of a folder with their lines."""
    paths = sorted((ROOT / folder).rglob("*.py"))
    return {
        path.relative_to(ROOT / folder): len(path.read_text(encoding="utf-8").splitlines())
        for path in paths
        if "node_modules" not in path.parts
    }


def _lines(left, patterns):
    """The lines of the files that patterns name, which leave the others."""
    named = [
        path for path in left if any(path.match(p) or _inside(path, p) for p in patterns.split())
    ]
    return sum(left.pop(path) for path in named)


def _inside(path, pattern):
    folder, _, rest = pattern.rpartition("/")
    return rest == "*" and str(path).startswith(folder + "/" if folder else "")


def table():
    """The rows, with lines rounded to tens."""
    package, tests = files("fieldtheory"), files("tests")
    rows = [HEAD, "|---|---|---|---|"]
    for feature, (own, of_tests, asked) in FEATURES.items():
        lines = (round(_lines(left, p), -1) for left, p in ((package, own), (tests, of_tests)))
        rows.append("| " + " | ".join([feature, *map(str, lines), asked]) + " |")
    return rows


def written(text):
    """The page with another table."""
    start = text.index(HEAD)
    end = re.compile(r"\n(?!\|)").search(text, start).start()
    return text[:start] + "\n".join(table()) + text[end:]


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
