"""The API page of the documentation is current; UPDATE_EXPECT=1 rewrites it."""

import ast
import importlib
import inspect
import os
import pathlib
import textwrap

import pytest

import consistory
from consistory import _native as native

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "consistory" / "_native.pyi"
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python-api.md"

HEAD = """\
# API of the Python package

Every public name with its docstring. [python.md](python.md) is the guide, [cluster.md](cluster.md) is about many machines. The tests compare this page with the package, and rewrite it with `UPDATE_EXPECT=1`.
"""

#: The modules in the order of the page, with their headings.
MODULES = {
    "consistory": "Histories, verdicts, models.",
    "consistory.litmus": "Litmus tests.",
    "consistory.stateful": "Hypothesis's stateful tests.",
    "consistory.pytest_plugin": "The pytest fixture `recorder`.",
    "consistory.ray": "Many machines.",
    "consistory.cluster": "`python -m consistory.cluster`.",
}


def public(module):
    """Returns the public names of a module in alphabetical order."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [
            name
            for name, thing in vars(module).items()
            if not name.startswith(("_", "pytest_")) and getattr(thing, "__module__", None) == module.__name__
        ]
    return sorted(listed)


def signature(function):
    """Returns the parameters of a function as written in its source."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    shown, is_keyword = [], False
    for parameter in found.parameters.values():
        if parameter.name in ("self", "slf", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword:
            shown.append("*")
            is_keyword = True
        if parameter.kind is parameter.VAR_POSITIONAL:
            is_keyword = True
        text = str(parameter.replace(annotation=parameter.empty))
        shown.append(text)
    return f"({', '.join(shown)})"


def described(thing):
    return textwrap.indent(inspect.cleandoc(thing.__doc__ or ""), "").strip()


def members(kind):
    """Returns the methods and properties of a class that have a docstring of their own."""
    for name, member in sorted(vars(kind).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, (staticmethod, classmethod)):
            member = member.__func__
        if not getattr(member, "__doc__", None):
            continue
        if callable(member):
            yield f"`{name}{signature(member)}`", member
        elif isinstance(member, property) or inspect.isgetsetdescriptor(member):
            yield f"`{name}`", member


def entry(name, thing):
    if inspect.isclass(thing):
        bases = [base.__name__ for base in thing.__bases__ if base.__name__ not in ("object", "tuple")]
        of = f"({', '.join(bases)})" if bases else ""
        lines = [f"### class `{name}{of}`", "", described(thing), ""]
        fields = getattr(thing, "_fields", ())
        assert all(f"``{field}``" in lines[2] for field in fields), f"{name} says nothing of a field"
        for title, member in members(thing):
            if title.strip("`") in fields:
                continue
            first, _, rest = described(member).partition("\n")
            lines.append(f"- {title}: {first}")
            if rest.strip():
                lines += ["", textwrap.indent(rest.strip("\n"), "  "), ""]
        return "\n".join(lines).rstrip() + "\n"
    if callable(thing):
        return f"### `{name}{signature(thing)}`\n\n{described(thing)}\n"
    return ""


def page():
    sections = [HEAD]
    for name, purpose in MODULES.items():
        module = importlib.import_module(name)
        sections.append(f"## `{name}`\n\n{purpose}\n")
        if name != "consistory":
            sections.append(f"{described(module)}\n")
        for member in public(module):
            thing = getattr(module, member)
            if not inspect.ismodule(thing):
                text = entry(member, thing)
                if text:
                    sections.append(text)
    return "\n".join(sections)


STUB = pathlib.Path(consistory.__file__).with_name("_native.pyi")


def with_docstrings(text):
    """Returns the stub of the native part with the docstrings of the package, which editors show."""
    lines = text.splitlines()
    bodies = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            kind = getattr(native, node.name)
            bodies += [(each, getattr(kind, each.name, None)) for each in node.body if isinstance(each, ast.FunctionDef)]
        elif isinstance(node, ast.FunctionDef):
            bodies.append((node, getattr(native, node.name)))
    for node, thing in reversed(bodies):
        doc = inspect.cleandoc(getattr(thing, "__doc__", None) or "")
        if not doc or node.name.startswith("_"):
            continue
        last = lines[node.end_lineno - 1]
        if ast.get_docstring(node) is None:
            assert last.endswith(" ..."), last
            lines[node.end_lineno - 1] = last[: -len(" ...")]
            at = node.end_lineno
        else:
            at = node.body[0].lineno - 1
            del lines[at : node.body[0].end_lineno]
        indent = " " * (node.col_offset + 4)
        shown = (f'"""{doc}"""' if "\n" not in doc else f'"""{doc}\n"""').splitlines()
        lines[at:at] = [indent + line if line else "" for line in shown]
    return "\n".join(lines) + "\n"


def test_the_stub_has_the_docstrings():
    text = STUB.read_text(encoding="utf-8")
    made = with_docstrings(text)
    if os.environ.get("UPDATE_EXPECT"):
        SOURCE.write_text(made, encoding="utf-8")
        return
    assert text == made, "UPDATE_EXPECT=1 rewrites the stub"


def test_the_api_page_is_current():
    for needed in ("ray", "hypothesis"):
        pytest.importorskip(needed)
    made = page()
    assert consistory.History.__name__ in made
    if os.environ.get("UPDATE_EXPECT"):
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made, "UPDATE_EXPECT=1 rewrites the page"
