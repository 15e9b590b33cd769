"""Every code and reason that the package can say, found in its syntax.

A word counts where it is bound to a parameter, a field or an attribute named ``code`` or ``reason``: by name, by
place (``MoveRefused("no_slot", ...)``), as a default, as an attribute of a class, or as a key of a table whose name
says so; or where a function whose name asks why returns it. So whoever adds one need not list it anywhere but in
docs/operations.md.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "worldmove"
CARRIERS = ("code", "reason")
TABLES = re.compile(r"(?:^|_)(?:CODES?|REASONS?|RETRY)(?:_|$)")
WORD = re.compile(r"[a-z][a-z0-9_]*")

Signature = tuple[list[str], int]
"""Parameters in order, and how many of them have no default."""
Signatures = Mapping[str, Sequence[Signature]]
"""By the name that is called: everything of that name."""


def codes(package: Path = PACKAGE) -> dict[str, str]:
    """Return each word with the first place where it stands."""
    trees = {
        str(path.relative_to(package)): ast.parse(path.read_text("utf-8")) for path in sorted(package.rglob("*.py"))
    }
    signatures: dict[str, list[Signature]] = {}
    for tree in trees.values():
        for name, signature in _signatures(tree):
            signatures.setdefault(name, []).append(signature)
    words: dict[str, str] = {}
    for name, tree in trees.items():
        for word, line in _words(tree, signatures):
            if WORD.fullmatch(word):
                words.setdefault(word, f"{name}:{line}")
    return words


def _signatures(tree: ast.AST) -> Iterator[tuple[str, Signature]]:
    """Yield what can be called, with the names of its parameters in order."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, _parameters(node)
        elif isinstance(node, ast.ClassDef):
            made = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"]
            fields = [item.target.id for item in node.body if _is_field(item)]  # type: ignore[attr-defined]
            yield node.name, _parameters(made[0]) if made else (fields, 0)


def _is_field(item: ast.stmt) -> bool:
    return isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Signature:
    names = [argument.arg for argument in function.args.args]
    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
    return names, len(names) - len(function.args.defaults)


def _words(tree: ast.AST, signatures: Signatures) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.Call():
                yield from _bound(node, signatures)
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=value)
            ) if value is not None:
                yield from _assigned(name, value)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                for target, value in zip(targets, values, strict=False):
                    if isinstance(target, ast.Name):
                        yield from _assigned(target.id, value)
            case ast.FunctionDef(name=name) if name.startswith(("_why", "_in_the_way")):
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Return) and inner.value is not None:
                        yield from _texts(inner.value)


def _bound(call: ast.Call, signatures: Signatures) -> Iterator[tuple[str, int]]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    fitting = [found for found in signatures.get(name, ()) if _fits(call, found)]
    for place, value in enumerate(call.args):
        # Two things of one name may mean two things by one place: then only a name says what it is.
        if fitting and all(place < len(names) and names[place] in CARRIERS for names, _ in fitting):
            yield from _texts(value)
    for keyword in call.keywords:
        if keyword.arg in CARRIERS:
            yield from _texts(keyword.value)


def _fits(call: ast.Call, signature: Signature) -> bool:
    """Whether something may be called so."""
    names, num_needed = signature
    num_given = len(call.args) + sum(keyword.arg in names for keyword in call.keywords)
    return len(call.args) <= len(names) and num_given >= num_needed


def _assigned(name: str, value: ast.expr) -> Iterator[tuple[str, int]]:
    if name in CARRIERS:
        yield from _texts(value)
    elif name.isupper() and TABLES.search(name) and isinstance(value, ast.Dict):
        for key in value.keys:
            yield from _texts(key) if key is not None else ()


def _texts(value: ast.expr) -> Iterator[tuple[str, int]]:
    """Yield the words that an expression may be: a constant, either side of a condition, the first of a pair."""
    match value:
        case ast.Constant(value=str(text)):
            yield text, value.lineno
        case ast.Tuple(elts=[first, _]):
            yield from _texts(first)
        case ast.IfExp(body=one, orelse=other):
            yield from _texts(one)
            yield from _texts(other)
        case ast.BoolOp(values=values):
            for part in values:
                yield from _texts(part)
