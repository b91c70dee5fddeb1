"""Inputs of a network: images of known sets, a user's own file, synthetic samples; the input scale.

Everything ends in a :class:`Dataset`, whose ``samples`` are the rows of X in the input kernel
σ²_w,in/d X Xᵀ + σ²_b,in (F25, text below eq. (27); F25 is Fischer, Dahmen and Helias, field theory
for residual networks).
"""

from fieldtheory.data.cifar10 import load_cifar10
from fieldtheory.data.dataset import Dataset
from fieldtheory.data.digits import load_digits, load_mnist
from fieldtheory.data.file import LABEL_NAMES, SAMPLE_NAMES, load_file
from fieldtheory.data.scale import equal_angles, normalise, scaled_kernel

__all__ = [
    "LABEL_NAMES",
    "SAMPLE_NAMES",
    "Dataset",
    "equal_angles",
    "load_cifar10",
    "load_digits",
    "load_file",
    "load_mnist",
    "normalise",
    "scaled_kernel",
]
