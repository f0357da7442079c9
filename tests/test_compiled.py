"""Modules that may be compiled are written so that they mean the same when they are.

The rules, and what mypyc does where they are broken, are in CONTRIBUTING.md.
"""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "kafkalite"
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
HOOK = CONFIG["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
MODULES = HOOK["modules"]

SUBCLASSED = "mypyc_attr"


def tree_of(module):
    return ast.parse((PACKAGE / f"{module}.py").read_text())


def functions(tree):
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def own_nodes(function):
    """Nodes of a function, without those of functions inside of it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def reused_handler_names(tree):
    """Names that two `except ... as` of different types in one function share."""
    found = []
    for function in functions(tree):
        types = {}
        for node in own_nodes(function):
            if isinstance(node, ast.ExceptHandler) and node.name:
                kind = ast.unparse(node.type)
                if types.setdefault(node.name, kind) != kind:
                    found.append(f"{function.name}: {node.name}")
    return found


def bare_nones(tree):
    """Locals that begin as None, say nothing of a type, and are replaced by `x = x or {}`."""
    found = []
    for function in functions(tree):
        begun = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, value = node.targets[0].id, node.value
                if isinstance(value, ast.Constant) and value.value is None:
                    begun.add(name)
                first = value.values[0] if isinstance(value, ast.BoolOp) else None
                if name in begun and isinstance(first, ast.Name) and first.id == name:
                    found.append(f"{function.name}: {name}")
    return found


def typed_only_imports(tree):
    """Names imported under TYPE_CHECKING."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for inner in ast.walk(node):
                if isinstance(inner, ast.Import | ast.ImportFrom):
                    names |= {alias.asname or alias.name for alias in inner.names}
    return names


def is_dataclass(node):
    return any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)


def unresolved_fields(tree):
    """Fields of dataclasses whose type is there for the type checker alone.

    Unions and functions do no harm.
    """
    hidden = typed_only_imports(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and is_dataclass(node):
            for field in node.body:
                if isinstance(field, ast.AnnAssign):
                    text = ast.unparse(field.annotation).strip("'\"")
                    if text.split("[")[0] in hidden - {"Callable"}:
                        found.append(f"{node.name}.{field.target.id}")
    return found


def classes_of(tree):
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def is_open(node):
    """Whether the class says that interpreted ones inherit from it."""
    return any(SUBCLASSED in ast.unparse(decorator) for decorator in node.decorator_list)


def exceptions(tree):
    return [
        node.name
        for node in classes_of(tree).values()
        if any(ast.unparse(base) in ("OSError", "IOError") for base in node.bases)
    ]


def magic_attributes(tree):
    """Classes that make up attributes: an instance of a compiled one has no `__dict__`."""
    names = {"__getattr__", "__getattribute__", "__setattr__"}
    return [
        f"{node.name}.{each.name}"
        for node in classes_of(tree).values()
        for each in ast.walk(node)
        if isinstance(each, ast.FunctionDef) and each.name in names
    ]


@pytest.mark.parametrize("module", MODULES)
class TestEachModule:
    def test_is_there(self, module):
        assert (PACKAGE / f"{module}.py").exists()

    def test_each_handler_of_exceptions_has_a_name_of_its_own(self, module):
        assert reused_handler_names(tree_of(module)) == []

    def test_local_that_is_none_at_first_says_what_it_becomes(self, module):
        assert bare_nones(tree_of(module)) == []

    def test_types_of_fields_are_imported_when_it_runs(self, module):
        assert unresolved_fields(tree_of(module)) == []

    def test_has_no_kind_of_oserror(self, module):
        assert exceptions(tree_of(module)) == []

    def test_attributes_are_declared(self, module):
        assert magic_attributes(tree_of(module)) == []


@pytest.mark.slow
def test_interpreted_classes_inherit_only_from_those_that_are_open_to_them():
    """Tests and the simulation have such classes, too."""
    compiled = {
        name: is_open(node)
        for module in MODULES
        for name, node in classes_of(tree_of(module)).items()
    }
    listed = {PACKAGE / f"{module}.py" for module in MODULES}
    found = []
    for folder in ("kafkalite", "tests", "benchmarks", "compat_tests"):
        for path in set((ROOT / folder).rglob("*.py")) - listed:
            text = path.read_text()
            if not any(f"({name}" in text or f", {name}" in text for name in compiled):
                continue
            tree = ast.parse(text)
            imported = {
                alias.name
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
                if PACKAGE.parent / f"{(node.module or '').replace('.', '/')}.py" in listed
            }
            for node in classes_of(tree).values():
                bases = {ast.unparse(base).split("[")[0] for base in node.bases} & imported
                found += [f"{path.name}: {node.name}({b})" for b in bases if not compiled[b]]
    assert found == []


class TestTheRulesThemselves:
    """Each finds what mypyc broke."""

    def test_handlers(self):
        source = """
def run():
    try:
        try:
            serve()
        except ValueError as error:
            note(error)
    except OSError as error:
        note(error)
"""
        assert reused_handler_names(ast.parse(source)) == ["run: error"]

    def test_nones(self):
        source = """
def append():
    markers = None
    for each in batches:
        markers = markers or {}
"""
        assert bare_nones(ast.parse(source)) == ["append: markers"]

    def test_fields(self):
        source = """
if TYPE_CHECKING:
    from a import Api, Name
@dataclass(slots=True)
class Handler:
    api: "Api[Any, Any]"
    name: "Name | None"
"""
        assert unresolved_fields(ast.parse(source)) == ["Handler.api"]

    def test_kinds_of_oserror(self):
        assert exceptions(ast.parse("class TornFile(OSError): pass")) == ["TornFile"]

    def test_magic(self):
        source = "class A:\n    def __setattr__(self, name, value): pass"
        assert magic_attributes(ast.parse(source)) == ["A.__setattr__"]
