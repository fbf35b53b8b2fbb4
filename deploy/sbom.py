"""Print the software bill of materials of this installation as JSON, in the format CycloneDX 1.6.

    python deploy/sbom.py > saros.cdx.json

The document lists Saros, the installed packages that it needs at run time (directly or not), and the packages whose
files are in the tree (`NOTICE`). With SOURCE_DATE_EPOCH in the environment, the same installation makes the same bytes.
The hashes of the packages are in `requirements.lock`.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = "saros"
#: A line of `NOTICE`, such as `uplot 1.6.32 (MIT)`.
_BUNDLED = re.compile(r"^ +(\S+) ([\d.]+) \((\S+)\)$", re.MULTILINE)
_CLASSIFIER = "License :: OSI Approved :: "

Component = dict[str, object]


def needed(name: str) -> list[str]:
    """Return the names of the packages that an installed package needs on this machine, without extras."""
    requirements = map(Requirement, distribution(name).requires or ())
    return sorted(
        {canonicalize_name(r.name) for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})}
    )


def closure(name: str) -> dict[str, list[str]]:
    """Return the package and all packages that it needs, directly or not, each with its direct requirements."""
    found: dict[str, list[str]] = {}
    ahead = [name]
    while ahead:
        if (package := ahead.pop()) not in found:
            found[package] = needed(package)
            ahead += found[package]
    return dict(sorted(found.items()))


def licenses(package: Distribution) -> list[object]:
    """Return the license that a package declares: an SPDX expression if it has one."""
    about = package.metadata
    if expression := about.get("License-Expression"):
        return [{"expression": expression}]
    names = [text.removeprefix(_CLASSIFIER) for text in about.get_all("Classifier", ()) if text.startswith(_CLASSIFIER)]
    text = about.get("License", "").strip()
    if not names and text:
        names = [text.splitlines()[0]]
    return [{"license": {"name": name}} for name in names]


def python_components(packages: Mapping[str, list[str]]) -> Iterator[Component]:
    """Yield a component for each installed package."""
    for name in packages:
        package = distribution(name)
        yield {
            "type": "application" if name == PRODUCT else "library",
            "bom-ref": _ref(name),
            "name": name,
            "version": package.version,
            "purl": f"pkg:pypi/{name}@{package.version}",
            "licenses": licenses(package),
        }


def bundled_components(notice: str) -> list[Component]:
    """Return a component for each package whose files are in the tree."""
    return [
        {
            "type": "library",
            "bom-ref": f"npm:{name}",
            "name": name,
            "version": version,
            "purl": f"pkg:npm/{name.replace('@', '%40')}@{version}",
            "licenses": [{"license": {"id": license_}}],
        }
        for name, version, license_ in sorted(set(_BUNDLED.findall(notice)))
    ]


def _ref(name: str) -> str:
    return f"pypi:{name}"


def bill_of_materials() -> dict[str, object]:
    """Return the bill of materials."""
    packages = closure(PRODUCT)
    product, *libraries = sorted(python_components(packages), key=lambda found: found["name"] != PRODUCT)
    bundled = bundled_components((ROOT / "NOTICE").read_text(encoding="utf-8"))
    edges = [{"ref": _ref(name), "dependsOn": [_ref(other) for other in others]} for name, others in packages.items()]
    for edge in edges:
        if edge["ref"] == _ref(PRODUCT):
            edge["dependsOn"] = [*edge["dependsOn"], *(str(found["bom-ref"]) for found in bundled)]
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    document: dict[str, object] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)), "component": product},
        "components": [*libraries, *bundled],
        "dependencies": edges,
    }
    return {**document, "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document))}"}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(bill_of_materials(), indent=2) + "\n")
