"""Execute the notebooks in place and keep of their outputs what is the same in every run.

    python notebooks/execute.py [name.ipynb ...]

Left out are the numbers of executions, times and settings of the machine, and where a printed text
was cut into pieces. `tests/test_notebooks.py` compares the texts with those of another execution.
"""

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
# Pictures are outputs whatever the caller's environment says.
INLINE = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def notebooks():
    """The paths of all notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def executed(path):
    """The notebook of this file with the outputs of a fresh kernel, normalised."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": path.parent}}
    )
    client.execute(env=os.environ | INLINE)
    return normalised(notebook)


def normalised(notebook):
    """The same notebook without what differs from run to run."""
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = _joined(cell.outputs)
    return notebook


def _joined(outputs):
    """Outputs without counts and metadata, what goes to one stream in one piece."""
    found = []
    for output in outputs:
        if output.output_type == "stream":
            if found and found[-1].get("name") == output.name:
                found[-1].text += output.text
                continue
        elif "execution_count" in output:
            output.execution_count = None
        if "metadata" in output:
            output.metadata = {}
        found.append(output)
    return found


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:] or notebooks()):
        nbformat.write(executed(path), path)
        print(path)
