"""Print the lowest versions that setup.cfg admits, as requirements for pip."""

import configparser
import re
from pathlib import Path

EXTRAS = ("figures", "data", "parallel", "proven", "test")

config = configparser.ConfigParser()
config.read(Path(__file__).parents[1] / "setup.cfg", encoding="utf-8")
groups = [
    config["options"]["install_requires"],
    *(config["options.extras_require"][name] for name in EXTRAS),
]
for group in groups:
    for name, lowest in re.findall(r"^([\w.\[\]-]+)>=([\d.]+)$", group, re.MULTILINE):
        print(f"{name}=={lowest}")
