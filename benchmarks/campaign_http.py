"""Mutated requests to every HTTP route of a server, with new seeds and for longer than the tests send them.

python benchmarks/campaign_http.py [--minutes M] [--seed 1]

The mutations change method, path, query, headers, cookies, body, compression and chunks, or end a request early; the
requests are sent with and without a login. The server must not crash, return 500, log an internal error, or leak
memory, and must keep serving other clients. A violation names its seed; the exit code is then 1.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import seeded_campaign
from interruptible import run

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from server.http.http_campaign import campaign


def main() -> int:
    """Run the campaign and print its figures; return 1 if there was a violation."""
    options = seeded_campaign.parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures, violations = campaign(Path(folder), seeded_campaign.seeds(options))
    return seeded_campaign.report(figures, violations)


if __name__ == "__main__":
    run(main)
