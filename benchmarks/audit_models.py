"""Architectures of transformers and timm as they start, against what their configurations declare.

    pip install fieldtheory-networks[torch,audit]
    python benchmarks/audit_models.py docs/audited_models.md

Every model is built small from its configuration, without weights and without a network, in 10
seconds or not at all. What is above the table in the page stays. Without a file it prints.
"""

import os
import signal
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}

import timm
import torch
import transformers
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

import fieldtheory as ft

SECONDS, LARGEST = 10, 30e6
# Roles that a row names.
NAMED = 3
WIDTH, LAYERS, HEADS, HIDDEN, WORDS = 64, 4, 4, 160, 200
SIZES = (
    (WIDTH, "hidden_size d_model n_embd dim embedding_size word_embed_proj_dim"),
    (LAYERS, "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers"),
    (LAYERS, "num_decoder_layers depth"),
    (HEADS, "num_attention_heads n_head n_heads num_heads encoder_attention_heads"),
    (HEADS, "decoder_attention_heads num_key_value_heads"),
    (HEADS, "num_experts num_local_experts n_routed_experts"),
    (HIDDEN, "intermediate_size ffn_dim encoder_ffn_dim decoder_ffn_dim d_ff n_inner"),
    (HIDDEN, "moe_intermediate_size"),
    (WORDS, "vocab_size"),
    (WIDTH // HEADS, "head_dim d_kv"),
)
# Names of small variants, the smallest first.
SMALL = "test_ atto femto pico nano tiny xxs xs mini small 18 b0 s0 m0".split()
MARK = "<!-- what follows is written by benchmarks/audit_models.py -->"


def shrunk(config: Any) -> Any:
    """A configuration with small sizes, in those of its parts too."""
    for value, names in SIZES:
        for name in names.split():
            if type(getattr(config, name, None)) is int:
                setattr(config, name, value)
    for name in ("layer_types", "mlp_layer_types"):
        # Some follow from others.
        with suppress(AttributeError):
            setattr(config, name, getattr(config, name)[:LAYERS])
    for part in vars(config).values():
        if isinstance(part, transformers.PretrainedConfig):
            shrunk(part)
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        if type(getattr(config, name, None)) is int:
            setattr(config, name, min(getattr(config, name), WORDS - 1))
    return config


def of_transformers(name: str) -> torch.nn.Module:
    """The bare model of a configuration that is shrunk."""
    return transformers.AutoModel.from_config(shrunk(transformers.AutoConfig.for_model(name)))


def declared(model: Any) -> Callable[[Any], Any]:
    """Matrices of ``initializer_range`` of the innermost part that has one; biases 0, norms 1."""
    ranges = {
        name: getattr(part.config, "initializer_range", None)
        for name, part in model.named_modules()
        if isinstance(part, transformers.PreTrainedModel)
    }

    def rule(place: Any) -> Any:
        own = [n for n in ranges if not n or place.name.startswith(f"{n}.")]
        size = ranges[max(own, key=len)]
        is_expert = place.kind == "matrix" and "expert" in place.name
        if place.kind in ("linear", "convolution", "embedding") or is_expert:
            return (
                size if isinstance(size, float) and "parametrizations" not in place.name else None
            )
        return {"bias": "zeros", "norm bias": "zeros", "norm": "ones"}.get(place.kind)

    return rule


def without_forward(model: torch.nn.Module) -> torch.nn.Module:
    """The weights of a model under their names, which spares the signals."""
    bare = torch.nn.Module()
    for name in ("_modules", "_parameters", "_buffers"):
        setattr(bare, name, getattr(model, name))
    return bare


@contextmanager
def limited() -> Iterator[None]:
    def late(*_: Any) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def architectures() -> Iterator[tuple[str, Callable[[], torch.nn.Module]]]:
    """Names with what builds them."""
    for name in MODEL_MAPPING_NAMES:
        yield f"transformers {name}", lambda n=name: of_transformers(n)
    for module in timm.list_modules():
        names = timm.list_models(module=module)
        if names:
            rank = {n: next((i for i, s in enumerate(SMALL) if s in n), len(SMALL)) for n in names}
            name = min(names, key=lambda n: (rank[n], len(n)))
            yield f"timm {name}", lambda n=name: timm.create_model(n, pretrained=False)


def reason(row: Any, tensor: Any) -> str:
    """Guess by the numbers of a deviation."""
    place, size = tensor.place, tensor.deviation
    depths = {f"1/√({k}L)": (k * place.depth) ** -0.5 for k in (1, 2)}
    usual = {
        "PyTorch's own": (3 * place.fan_in) ** -0.5,
        "normal of variance 1": 1.0,
        "σ²_w = 1": place.fan_in**-0.5,
        "fan-out": place.fan_out**-0.5,
        "Xavier": (2 / (place.fan_in + place.fan_out)) ** 0.5,
        "He": (2 / place.fan_in) ** 0.5,
        "0.02": 0.02,
    }
    if row.against == "chance":
        return row.measured
    if size == 0:
        return "zeros"
    near = 4 * tensor.error / size + 1e-3
    if abs(row.factor / 0.8796 - 1) < near:
        return "cut at two deviations, not corrected"
    for text, factor in depths.items():
        if abs(row.factor / factor - 1) < near:
            return text
    for text, other in usual.items():
        if abs(size / other - 1) < near:
            return f"{text}, {tensor.law}"
    return tensor.law


def lines_of(name: str, model: torch.nn.Module) -> list[str]:
    """Rows of the table, one for every reason."""
    intent = declared(model) if isinstance(model, transformers.PreTrainedModel) else None
    audit = ft.audit(without_forward(model), intent=intent)
    tensors = {tensor.place.name: tensor for tensor in audit.tensors}
    groups = defaultdict(list)
    for row in audit.deviations:
        # The rows of roles as a whole are no tensors.
        tensor = tensors.get(row.name)
        groups[reason(row, tensor) if tensor else "together", row.meant].append(row)
    lines = []
    for (why, meant), rows in groups.items():
        places = (tensors[row.name].place.role if row.name in tensors else row.name for row in rows)
        roles = dict.fromkeys(f"`{place}`" for place in places)
        names = ", ".join([*roles][:NAMED]) + f" and {len(roles) - NAMED} more" * (
            len(roles) > NAMED
        )
        numbers = f"{rows[0].measured} | {meant} | {rows[0].factor:.3g} | {rows[0].z:.3g}"
        lines.append(f"| {name} | {names} | {len(rows)} | {numbers} | {why} |")
    return lines


def main() -> None:
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    lines, silent, skipped, start = [], [], [], time.perf_counter()
    for name, build in architectures():
        torch.manual_seed(0)
        try:
            with limited():
                model = build()
            if sum(p.numel() for p in model.parameters()) > LARGEST:
                raise ValueError(f"more than {LARGEST / 1e6:.0f} million parameters")
            rows = lines_of(name, model)
        except (Exception, TimeoutError) as error:
            words = " ".join(f"{type(error).__name__}: {error}".split())[:100]
            skipped.append(f"| {name} | {words.replace('|', '/')} |")
        else:
            lines += rows
            silent += [name] * (not rows)
        print(name, f"{time.perf_counter() - start:.0f} s", len(lines), file=sys.stderr, flush=True)
    versions = f"transformers {transformers.__version__}, timm {timm.__version__}"
    text = "\n".join(
        [
            f"{len(silent)} architectures of {versions}, torch {torch.__version__}, as declared: "
            f"{', '.join(silent)}.\n",
            "| architecture | parameters | number | measured | meant | factor | z | reason |",
            "|---|---|---|---|---|---|---|---|",
            *lines,
            f"\n## Not built\n\n| {len(skipped)} architectures | why |\n|---|---|",
            *skipped,
        ]
    )
    if len(sys.argv) < 2:
        print(text)
        return
    page = Path(sys.argv[1])
    head = page.read_text(encoding="utf-8").split(MARK)[0] if page.exists() else ""
    page.write_text(f"{head}{MARK}\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
