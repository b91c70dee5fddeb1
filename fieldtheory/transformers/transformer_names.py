"""The public names of the room."""

from fieldtheory.transformers.transformer_network import TransformerNetwork as TransformerNetwork
from fieldtheory.transformers.transformer_solution import (
    TransformerSolution as TransformerSolution,
)
