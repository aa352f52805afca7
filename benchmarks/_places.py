"""Places of the package where a mutant may be, and what may stand there instead: for `mutants.py`."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LEFT_OUT = ("cli/showcase.py",)  # the demonstration
GUARDS = ("strict", "check_finite", "stacklevel")  # arguments that change nothing where there is no mistake

OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitAnd: (ast.BitOr,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
PAIRS = (
    ("min", "max"),
    ("minimum", "maximum"),
    ("argmin", "argmax"),
    ("all", "any"),
    ("floor", "ceil"),
    ("zeros", "ones"),
)
SWAPS = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}


@dataclass(frozen=True)
class Place:
    """An expression of the package, and what may be written instead."""

    file: str  # below the package
    line: int
    function: int  # first line of the function around it; 0 in none
    span: tuple[int, int]  # bytes of the file
    original: str
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Mutant:
    """One of the choices at a place."""

    number: int
    place: Place
    text: str

    def __str__(self) -> str:
        original, text = (" ".join(part.split()) for part in (self.place.original, self.text))
        return f"{self.number:3d}  {self.place.file}:{self.place.line}\n       - {original}\n       + {text}"


def places(package: Path) -> list[Place]:
    """Every place of the package where a mutant may be."""
    found = []
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package).as_posix()
        if file not in LEFT_OUT:
            found += places_of(file, path.read_text(encoding="utf-8"))
    return found


def places_of(file: str, source: str) -> list[Place]:
    """The places of one module."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, choices, function in _changes(ast.parse(source), 0):
        span = (starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset)
        original = source.encode()[slice(*span)].decode()
        found.append(Place(file, node.lineno, function, span, original, tuple(choices)))
    return sorted(found, key=lambda place: place.span)


def _changes(node: ast.AST, function: int) -> Iterator[tuple[Any, list[str], int]]:
    """Nodes below a node, each with what may be written instead and the first line of its function."""
    for child in _seen_children(node):
        within = function
        # defaults and decorators belong to what surrounds the definition
        if isinstance(node, ast.FunctionDef) and child in node.body:
            within = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        for choices in (_instead(child), _negated(node, child)):
            if choices:
                yield child, choices, within
        yield from _changes(child, within)


def _seen_children(node: ast.AST) -> Iterator[ast.AST]:
    """Children of a node, but for messages, annotations and what only type checkers read."""
    if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'"):
        return
    if isinstance(node, ast.Raise | ast.JoinedStr) or _is_type_alias(node):
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("warn", "mention"):
        return
    if isinstance(node, ast.keyword) and node.arg in GUARDS:
        return
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, ast.AST))


def _is_type_alias(node: ast.AST) -> bool:
    """Whether a statement gives a name to a type, which is one in CamelCase."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
        return False
    name = node.targets[0].id
    return name[0].isupper() and not name.isupper()


def _instead(node: ast.AST) -> list[str]:
    """Words accepted instead of a node."""
    match node:
        case ast.BinOp(left=left, right=right) if not any(_is_text(side) for side in (left, right)):
            return [_with(node, op=other()) for other in OPERATORS.get(type(node.op), ())]
        case ast.AugAssign() | ast.BoolOp():
            return [_with(node, op=other()) for other in OPERATORS.get(type(node.op), ())]
        case ast.Compare(ops=ops):
            changed = [
                (*ops[:n], other(), *ops[n + 1 :]) for n, one in enumerate(ops) for other in OPERATORS[type(one)]
            ]
            return [_with(node, ops=list(others)) for others in changed]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return [f"({ast.unparse(operand)})"]
        case ast.Constant(value=bool(value)):
            return [repr(not value)]
        case ast.Constant(value=int(value)):
            return [f"({value - 1})", f"({value + 1})"]
        case ast.Constant(value=float(value)):
            return _other_floats(value)
        case ast.Name(id="min" | "max" | "all" | "any" as name):
            return [SWAPS[name]]
        case ast.Attribute(attr=name) if name in SWAPS:
            return [_with(node, attr=SWAPS[name])]
        case ast.Call(func=ast.Name(id="range"), args=[*_, stop]) if not isinstance(stop, ast.Constant):
            return [_with(node, args=[*node.args[:-1], _off(stop, by)]) for by in (-1, 1) if len(node.args) < 3]
        case ast.Slice(lower=lower, upper=upper):
            ends = {name: end for name, end in (("lower", lower), ("upper", upper)) if end is not None}
            # ends in numbers are constants, which have choices of their own
            return [_with(node, **{name: _off(end, 1)}) for name, end in ends.items() if not _is_number(end)]
    return []


def _negated(parent: ast.AST, node: ast.AST) -> list[str]:
    """The negation of a node, if it is the condition of its parent; a comparison has its own."""
    is_condition = node is getattr(parent, "test", None) or node in getattr(parent, "ifs", ())
    if not is_condition or isinstance(node, ast.Compare | ast.UnaryOp):
        return []
    return [f"(not ({ast.unparse(node)}))"]


def _with(node: ast.AST, **fields: Any) -> str:
    """The text of a node with some fields changed, in brackets where it is an expression."""
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    is_operation = isinstance(node, ast.BinOp | ast.BoolOp | ast.Compare)
    return f"({ast.unparse(changed)})" if is_operation else ast.unparse(changed)


def _off(node: ast.expr, by: int) -> ast.expr:
    return ast.BinOp(node, ast.Add() if by > 0 else ast.Sub(), ast.Constant(abs(by)))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant))


def _other_floats(value: float) -> list[str]:
    """Half and twice the value; a tolerance is wrong when its order of magnitude is."""
    if value == 0:
        return ["1.0"]
    factor = 2 if 1e-3 < value < 1e6 else 1000
    return [repr(float(f"{other:.12g}")) for other in (value / factor, value * factor)]


def drawn(found: Sequence[Place], number: int, seed: int) -> list[Mutant]:
    """Mutants at places drawn without repetition."""
    chance = random.Random(seed)
    chosen = chance.sample(range(len(found)), min(number, len(found)))
    mutants = [(place, chance.choice(found[place].choices)) for place in chosen]
    return [Mutant(number + 1, found[place], text) for number, (place, text) in enumerate(sorted(mutants))]


def mutated(source: bytes, mutants: Sequence[Mutant]) -> bytes:
    """A module with some mutants in it, which must not overlap."""
    for mutant in sorted(mutants, key=lambda one: one.place.span, reverse=True):
        start, stop = mutant.place.span
        source = source[:start] + mutant.text.encode() + source[stop:]
    return source
