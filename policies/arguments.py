"""Which arguments a policy takes, read from its source: importing it may take torch and seconds."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

__all__ = ["arguments_of"]

Definition = ast.ClassDef | ast.FunctionDef


def arguments_of(target: str) -> tuple[str, ...] | None:
    """Names of the arguments of a ``module:Class`` or ``module:function``.

    A function that hands its ``**kwargs`` on to a class of the same file takes those of the class
    as well, but for the ones that it sets itself.

    Returns:
        None where the source does not say.

    >>> arguments_of("policies.simple:RandomPolicy")
    ('seed', 'action_low', 'action_high')
    >>> arguments_of("no.such.module:Policy") is None
    True
    """
    module, _, attribute = target.partition(":")
    try:
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            return None
        tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    except (ImportError, OSError, SyntaxError, ValueError):
        return None
    kinds = (ast.ClassDef, ast.FunctionDef)
    known = {node.name: node for node in tree.body if isinstance(node, kinds)}
    return _taken(attribute, known)


def _taken(name: str, known: dict[str, Definition]) -> tuple[str, ...] | None:
    found = known.get(name)
    function = _init(found) if isinstance(found, ast.ClassDef) else found
    if function is None:
        return None
    own = function.args
    names = [one.arg for one in (*own.posonlyargs, *own.args, *own.kwonlyargs)]
    if isinstance(found, ast.ClassDef):
        names = names[1:]  # self
    if own.kwarg is None:
        return tuple(names)
    call = _passed_on(function, own.kwarg.arg)
    if call is None or not isinstance(call.func, ast.Name) or call.func.id == name:
        return None
    inner = _taken(call.func.id, known)
    if inner is None:
        return None
    given = {keyword.arg for keyword in call.keywords}
    rest = [one for one in inner[len(call.args) :] if one not in given]
    return (*names, *(one for one in rest if one not in names))


def _init(found: ast.ClassDef) -> ast.FunctionDef | None:
    """The class's own ``__init__``; one without takes its base's, which may be anywhere."""
    for node in found.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            return node
    return None


def _passed_on(function: ast.FunctionDef, kwargs: str) -> ast.Call | None:
    """The call that gets the function's ``**kwargs``."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                passed = keyword.value
                if keyword.arg is None and isinstance(passed, ast.Name) and passed.id == kwargs:
                    return node
    return None
