"""Mutated messages of both client protocols to a server, with new seeds and for longer than the tests send them.

python benchmarks/campaign_wire.py [--minutes M] [--protocol iotdb|native] [--seed 1]

The mutations change bits and lengths, and omit, repeat, exchange and nest parts; the messages are sent with and without
a login. The server must not crash, log an internal error, or leak memory, and must keep serving another client. A
violation names its seed; the exit code is then 1.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import seeded_campaign
from interruptible import run

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from server.wire_campaign import PROTOCOLS, campaign


def main() -> int:
    """Run the campaign and print its figures; return 1 if there was a violation."""
    parser = seeded_campaign.parser(__doc__)
    parser.add_argument("--protocol", choices=[protocol.name for protocol in PROTOCOLS], help="only this one")
    options = parser.parse_args()
    protocols = [protocol for protocol in PROTOCOLS if options.protocol in (None, protocol.name)]
    with tempfile.TemporaryDirectory() as folder:
        figures, violations = campaign(Path(folder), protocols, seeded_campaign.seeds(options))
    return seeded_campaign.report(figures, violations)


if __name__ == "__main__":
    run(main)
