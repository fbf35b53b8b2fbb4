"""docs/compatibility.md has the version number that the code defines for each format and protocol."""

from __future__ import annotations

import ast
import re
from importlib import import_module

from house.source_tree import ROOT, module_of, trees

ROW = re.compile(r"^\| .+ \| (\d+) \| `([\w.]+)\.(\w+)` \|$", re.MULTILINE)
DOCUMENTED = ROW.findall((ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8"))
NUMBER_NAME = re.compile(r"_?(\w+_)?(VERSION|FORMAT|PROTOCOL)(_\d)?")
#: Constants for versions of other projects' protocols, and constants whose names only look like names of versions.
OTHERS = {
    "saros_server.thrift.sessions._PROTOCOL_VERSION",
    "saros_cluster.topology.topology.FIRST_VERSION",
    "saros_shell.output.pager._HEADER_VERSION",
    "saros_storage.tsfile.structure.format.VERSION_3",
}


def test_documented_numbers_are_those_of_the_code() -> None:
    assert DOCUMENTED
    for number, module, name in DOCUMENTED:
        assert int(number) == getattr(import_module(module), name), f"{module}.{name}"


def test_every_number_of_a_format_is_documented() -> None:
    found = {
        f"{module_of(path)}.{node.targets[0].id}"
        for path, tree in trees().items()
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and NUMBER_NAME.fullmatch(node.targets[0].id)
        and isinstance(node.value, ast.Constant)
        and type(node.value.value) is int
    }
    assert found - OTHERS == {f"{module}.{name}" for _, module, name in DOCUMENTED}
