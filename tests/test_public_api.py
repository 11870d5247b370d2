"""The public names exist, are sorted, and cost nothing until they are used."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import jumar

SOURCE = Path(jumar.__file__).parent
# Optional packages: no module of jumar may need one to be imported.
EXTRAS = ("torch", "ray", "netron")
MODULES = sorted(
    ".".join(("jumar", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__") for path in SOURCE.rglob("*.py")
)


def python(program: str, *arguments: str) -> str:
    found = subprocess.run([sys.executable, "-W", "error", "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_the_public_names_are_sorted_and_unique() -> None:
    assert jumar.__all__ == sorted(set(jumar.__all__))


@pytest.mark.parametrize("name", jumar.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(jumar, name)
    assert callable(value)
    assert value.__doc__ and value.__module__.startswith("jumar.")
    assert name in dir(jumar)


def test_the_lists_of_names_agree() -> None:
    """The table of homes, ``__all__`` and what type checkers read are three lists of the same names."""
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == {*jumar.__all__} == {*jumar._HOME}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = jumar.nothing


def test_every_verb_of_the_command_line_is_a_function() -> None:
    assert {"check", "compile", "explain", "fix", "migrate", "verify"} <= {*jumar.__all__}


def test_the_import_loads_nothing() -> None:
    loaded = set(json.loads(python("import sys, json, jumar; print(json.dumps(sorted(sys.modules)))")))
    assert not loaded & {"numpy", "onnx", "onnx_ir", "onnxruntime", "typer", "rich", "ml_dtypes", *EXTRAS}
    assert {name for name in loaded if name.startswith("jumar")} == {"jumar"}


def test_every_module_imports_without_an_extra() -> None:
    """In one bare interpreter in which the extras cannot be imported."""
    assert len(MODULES) > 60
    program = f"""if True:
        import importlib, sys
        for name in {EXTRAS!r}:
            sys.modules[name] = None
        for name in sys.argv[1:]:
            importlib.import_module(name)
        print(len(sys.argv) - 1)
    """
    assert int(python(program, *MODULES)) == len(MODULES)


def test_the_package_is_typed() -> None:
    assert (SOURCE / "py.typed").is_file()


def test_the_version_has_three_numbers() -> None:
    assert len(jumar.__version__.split(".")) == 3
