"""Only the sandbox's own tests know more of it than its public interface."""

import ast
from pathlib import Path

import nexar_sandbox

PUBLIC_MODULES = {"nexar_sandbox", "nexar_sandbox.faults", "nexar_sandbox.legacy_v3.disturbances"}
# The command of the proxy passes its arguments on; docs/ and their tests hold the reference to the code.
INSIDERS = {
    "proxy/cli/sandbox.py",
    "docs/command_line.py",
    "docs/man_page.py",
    "docs/sandbox_deviations.py",
    "tests/project/docs/test_numbers.py",
    "tests/project/docs/test_sandbox.py",
}


def _names(path: Path) -> set[str]:
    """Full names that a file imports or reads from the sandbox."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nexar_sandbox"):
            found |= {f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names if name.name.startswith("nexar_sandbox")}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "nexar_sandbox":
            found.add(f"nexar_sandbox.{node.attr}")
    return found


def test_others_use_its_public_names(root: Path) -> None:
    public = PUBLIC_MODULES | {
        f"nexar_sandbox.{name}" for name in (*nexar_sandbox.__all__, "__all__", "__version__", "__doc__")
    }
    files = [path for part in ("proxy", "bench", "docs", "tests") for path in (root / part).rglob("*.py")]
    used = {
        name: _names(path) - public
        for path in files
        if not (name := path.relative_to(root).as_posix()).startswith("tests/sandbox/") and name not in INSIDERS
    }
    inside = {
        name: hidden
        for name, names in used.items()
        if (hidden := {each for each in names if each.rpartition(".")[0] not in PUBLIC_MODULES - {"nexar_sandbox"}})
    }
    assert inside == {}
    assert len([names for names in used.values() if not names]) < len(files)
