"""What makes a file impure, found in its syntax: each finding is a line and a few words.

``impure`` is for files that decide, ``unported`` for drivers, ``unstable`` for both. A set behind a call or in
another file is not seen here; running twice under two hash seeds sees it.
"""

import ast
from collections.abc import Iterator, Mapping

# A name ending in a dot stands for everything inside; any other for itself and what is inside.
PORTS_ONLY = (
    *("time", "random.", "uuid", "secrets", "os.urandom", "os.getrandom", "os.environ", "os.getenv", "os.fork"),
    *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"),
    *("threading", "_thread", "concurrent", "multiprocessing", "subprocess", "signal", "aiosqlite"),
    *("socket", "selectors", "select"),
    *("asyncio.to_thread", "asyncio.wait", "asyncio.as_completed", "asyncio.get_event_loop", "asyncio.run"),
    *("asyncio.open_connection", "asyncio.open_unix_connection", "asyncio.start_server"),
    *("asyncio.start_unix_server", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"),
    *("numpy.random.", "weakref.finalize"),
)
IMPURE_BUILTINS = frozenset({"__import__", "compile", "eval", "exec", "globals", "input", "open", "print"})
PORTS_ONLY_METHODS = frozenset({"run_in_executor", "call_soon_threadsafe", "__del__"})
ALLOWED = frozenset({"random.Random"})  # as a type: the value is an argument

UNSTABLE_BUILTINS = frozenset({"id", "hash"})
SET_MAKERS = frozenset({"set", "frozenset"})
UNORDERED = frozenset({"sorted", "set", "frozenset", "any", "all"})  # take a generator's items in whatever order
ORDER_TAKERS = frozenset({"list", "tuple", "iter", "enumerate", "zip", "map", "filter", "join", "fromkeys"})

Finding = tuple[int, str]


def _origins(tree: ast.AST) -> dict[str, str]:
    """What each imported name of a file stands for."""
    origins = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                origins[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                origins[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return origins


def _dotted(node: ast.AST, origins: Mapping[str, str]) -> str:
    """The full name of ``a.b.c`` if ``a`` was imported, else an empty string."""
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value, origins)
        return base and f"{base}.{node.attr}"
    return origins.get(node.id, "") if isinstance(node, ast.Name) else ""


def names(tree: ast.AST) -> Iterator[Finding]:
    """Every imported name that a file mentions, aliases resolved, with its line."""
    origins = _origins(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from ((node.lineno, alias.name) for alias in node.names)
            case ast.ImportFrom():
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
            case ast.Attribute() | ast.Name():
                name = _dotted(node, origins)
                yield from [(node.lineno, name)] if name else []


def matches(name: str, banned: str) -> bool:
    """Whether ``banned`` covers ``name``."""
    inside = banned if banned.endswith(".") else f"{banned}."
    return name == banned or name.startswith(inside)


def _makes_set(node: ast.AST, known: frozenset[str]) -> bool:
    """Whether an expression is a set: written in place, made by name, or a name that this file bound to one."""
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id=maker)):
            return maker in SET_MAKERS
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in known
        case ast.BinOp(op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor()):
            return _makes_set(node.left, known) or _makes_set(node.right, known)
    return False


def _set_type(annotation: ast.AST) -> bool:
    base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return isinstance(base, ast.Name) and base.id in SET_MAKERS | {"AbstractSet", "MutableSet"}


def _bound_to_sets(tree: ast.AST) -> frozenset[str]:
    """The names and attributes that a file annotates as sets, or assigns sets to."""
    found: list[ast.AST] = []
    bound: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.AnnAssign() if _set_type(node.annotation):
                found.append(node.target)
            case ast.Assign() if _makes_set(node.value, frozenset()):
                found.extend(node.targets)
            case ast.arg() if node.annotation and _set_type(node.annotation):
                bound.append(node.arg)
    bound.extend(node.id for node in found if isinstance(node, ast.Name))
    bound.extend(node.attr for node in found if isinstance(node, ast.Attribute))
    return frozenset(bound)


def _into_unordered(tree: ast.AST) -> list[ast.comprehension]:
    """The loops of comprehensions whose results have no order, or get one afterwards."""
    found: list[ast.comprehension] = []
    for node in ast.walk(tree):
        match node:
            case ast.SetComp():
                found.extend(node.generators)
            case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp() as items, *_]) if name in UNORDERED:
                found.extend(items.generators)
    return found


def _ordered(node: ast.AST) -> list[ast.expr]:
    """The expressions whose order a node takes over."""
    match node:
        case ast.For() | ast.AsyncFor() | ast.comprehension():
            return [node.iter]
        case ast.Starred():
            return [node.value]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in ORDER_TAKERS:
            return list(node.args)
    return []


def unstable(tree: ast.AST) -> Iterator[Finding]:
    """What differs between two processes that run the same code."""
    sets, unordered = _bound_to_sets(tree), _into_unordered(tree)
    excused = [inner for node in ast.walk(tree) if getattr(node, "name", "") == "__hash__" for inner in ast.walk(node)]
    for node in ast.walk(tree):
        for expression in _ordered(node):
            if node not in unordered and _makes_set(expression, sets):
                yield expression.lineno, "takes an order from a set"
        if node not in excused and isinstance(node, ast.Name) and node.id in UNSTABLE_BUILTINS and _is_read(node):
            yield node.lineno, f"uses {node.id}()"


def _outliving(tree: ast.AST) -> Iterator[Finding]:
    """What a second run in the same process would find: a module's state; a generator that the collector ends."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield node.lineno, f"keeps {', '.join(node.names)} in its module"
        elif isinstance(node, ast.AsyncFunctionDef) and _yields(node) and not _is_managed(node):
            yield node.lineno, f"{node.name} is an asynchronous generator"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = node.value.func
            if isinstance(called, ast.Attribute) and called.attr == "create_task" and _is_asyncio(called.value):
                yield node.lineno, "keeps no reference to a task"


def _yields(function: ast.AsyncFunctionDef) -> bool:
    return any(isinstance(node, ast.Yield) for node in ast.walk(function))


def _is_managed(function: ast.AsyncFunctionDef) -> bool:
    """Whether a generator is ended by an ``async with``, in its turn."""
    names = [node.id for node in function.decorator_list if isinstance(node, ast.Name)]
    return "asynccontextmanager" in names


def _is_asyncio(node: ast.AST) -> bool:
    """Whether tasks are made by the loop itself: a group keeps its own."""
    return isinstance(node, ast.Name) and node.id in ("asyncio", "loop")


def _is_read(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def impure(tree: ast.AST, imports: frozenset[str]) -> Iterator[Finding]:
    """What a file that decides must not have."""
    yield from unstable(tree)
    yield from unported(tree)
    for line, name in names(tree):
        if name.partition(".")[0] not in imports:
            yield line, f"imports {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef) and not _only_declared(node):
            yield node.lineno, f"waits in {node.name}"
        elif isinstance(node, ast.Name) and node.id in IMPURE_BUILTINS:
            yield node.lineno, f"uses {node.id}()"


def _only_declared(function: ast.AsyncFunctionDef) -> bool:
    """Whether a function is a contract's: a docstring and ``...``."""
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in function.body)


def unported(tree: ast.AST) -> Iterator[Finding]:
    """What a driver must get as an argument, and what outlives a run of it."""
    yield from _outliving(tree)
    for line, name in names(tree):
        if name not in ALLOWED and any(matches(name, banned) for banned in PORTS_ONLY):
            yield line, f"uses {name}"
    for node in ast.walk(tree):
        called = node.attr if isinstance(node, ast.Attribute) else getattr(node, "name", "")
        if called in PORTS_ONLY_METHODS and isinstance(node, ast.Attribute | ast.FunctionDef):
            yield node.lineno, f"uses {called}"
