"""The benchmark's data takes about as many bytes per point as files of Apache's writer with the same encodings."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from storage.test_tsfile_interop import apache

from saros_shell.commands.bench import WAVES, wave
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.io.disk import LocalDisk
from saros_storage.tsfile.verifier import check_tsfile
from saros_storage.tsfile.writer import TsFileWriter

pytestmark = pytest.mark.slow

if importlib.util.find_spec("tsfile") is None:
    pytest.skip("the package tsfile is not installed", allow_module_level=True)

ROWS = 20_000
RATIO_MAX = 1.1


def test_our_files_are_at_most_a_tenth_larger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    times = 1_704_067_200_000 + np.arange(ROWS, dtype=np.int64) * 1_000
    kinds = [(DataType.DOUBLE, Encoding.GORILLA), (DataType.INT64, Encoding.TS_2DIFF)]
    ours, theirs, spec_path = tmp_path / "ours.tsfile", tmp_path / "theirs.tsfile", tmp_path / "spec.json"
    file = LocalDisk().create(str(ours))
    writer = TsFileWriter(file)
    columns = {}
    for type_, encoding in kinds:
        for kind in WAVES:
            values = wave(kind, ROWS, rng)
            values = values if type_ is DataType.DOUBLE else (values * 100).astype(np.int64)
            name = f"{kind}_{type_.name}".lower()
            writer.write_series("root.b.d", name, type_, encoding, Compressor.LZ4, times, values)
            rows = list(zip(times.tolist(), values.tolist(), strict=True))
            stored = {"type": type_.value, "encoding": encoding.value, "compressor": Compressor.LZ4.value}
            columns[name] = {**stored, "rows": rows}
    writer.finish()
    file.close()
    spec_path.write_text(json.dumps({"model": "tree", "devices": {"root.b.d": columns}}))
    apache("write", str(theirs), str(spec_path))
    assert [] == check_tsfile(str(theirs), LocalDisk().map(str(theirs))).problems
    points = ROWS * len(columns)
    own, other = ours.stat().st_size, theirs.stat().st_size
    with capsys.disabled():
        print(f"\nbytes per point: {own / points:.3f}, Apache's {other / points:.3f}, ratio {own / other:.3f}")
    assert own <= RATIO_MAX * other
