from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saros_storage.base.errors import CorruptFile, NewerFormat, UserMistake
from saros_storage.base.paths import parse_pattern
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.schema import (
    AlterSeries,
    CreateDatabase,
    CreateSeries,
    Deadband,
    DeleteDatabase,
    DeleteSeries,
    SchemaChange,
    SchemaTree,
    SeriesSchema,
    decode_change,
    encode_change,
    is_internal,
    stored_encoding,
)


def series(name: str, type_: DataType = DataType.DOUBLE, **more: object) -> SeriesSchema:
    encoding = more.pop("encoding", Encoding.PLAIN)
    return SeriesSchema(name, type_, encoding, Compressor.LZ4, **more)  # type: ignore[arg-type]


def change(tree: SchemaTree, *changes: SchemaChange) -> SchemaTree:
    for one in changes:
        tree.check(one)
        tree.apply(one)
    return tree


def plant() -> SchemaTree:
    return change(
        SchemaTree(),
        CreateDatabase("root.plant"),
        CreateDatabase("root.ln.`a.b`"),
        CreateSeries("root.plant.pump2", False, (series("t"), series("p", alias="pressure"))),
        CreateSeries("root.plant.pump1", True, (series("t"),)),
        CreateSeries("root.plant.pump1.inner", False, (series("t"),)),
        CreateSeries("root.ln.`a.b`.d", False, (series("`s 1`"),)),
    )


def paths(tree: SchemaTree, pattern: str) -> list[str]:
    return [f"{d.path}.{s.measurement}" for d, s in tree.match_series(parse_pattern(pattern))]


def test_patterns_find_series_in_path_order() -> None:
    tree = plant()
    assert [
        "root.plant.pump1.t",
        "root.plant.pump1.inner.t",
        "root.plant.pump2.p",
        "root.plant.pump2.t",
    ] == paths(tree, "root.plant.**")
    assert ["root.plant.pump1.t", "root.plant.pump2.t"] == paths(tree, "root.plant.*.t")
    assert ["root.plant.pump2.p"] == paths(tree, "root.plant.pump2.pressure")
    assert ["root.ln.`a.b`.d.`s 1`"] == paths(tree, "root.**.`s 1`")
    assert [] == paths(tree, "root.nothing.**")


def test_devices_databases_and_children() -> None:
    tree = plant()
    assert ["root.ln.`a.b`", "root.plant"] == tree.databases()
    assert ["root.plant"] == tree.match_databases(parse_pattern("root.*"))
    devices = [d.path for d in tree.match_devices(parse_pattern("root.plant.*"))]
    assert ["root.plant.pump1", "root.plant.pump2"] == devices
    assert ["root.plant.pump1.inner", "root.plant.pump1.t"] == tree.child_paths(parse_pattern("root.plant.pump1"))
    assert ["ln", "plant"] == tree.child_nodes(parse_pattern("root"))
    assert ["root.ln", "root.plant"] == tree.nodes_at_level(parse_pattern("root.**"), 1)
    assert ("root.plant", None) == (tree.database_of("root.plant.pump9.x"), tree.database_of("root.other.d"))
    device = tree.device("root.plant.pump2")
    assert device is not None
    assert "p" == getattr(device.find("pressure"), "measurement", None)


@pytest.mark.parametrize(
    ("bad", "code", "message"),
    [
        (CreateDatabase("root.plant"), 501, "root.plant has already been created as database"),
        (CreateDatabase("root.plant.sub"), 501, "root.plant has already been created as database"),
        (CreateDatabase("root.ln"), 529, "some children of root.ln"),
        (CreateDatabase("root"), 509, "needs a node below root"),
        (DeleteDatabase("root.none"), 504, "does not exist"),
        (CreateSeries("root.other.d", False, (series("t"),)), 504, "no database holds root.other.d"),
        (CreateSeries("root.plant.pump2", False, (series("t"),)), 503, "Path [root.plant.pump2.t] already exist"),
        (CreateSeries("root.plant.pump2", False, (series("pressure"),)), 503, "pressure] already exist"),
        (CreateSeries("root.plant.pump2", False, (series("x", alias="t"),)), 505, "Alias [t] for Path"),
        (CreateSeries("root.plant.pump2", True, (series("x"),)), 511, "not aligned"),
        (CreateSeries("root.plant.pump2.t", False, (series("x"),)), 506, "Path [root.plant.pump2.t] already exist"),
        (CreateSeries("root.plant", False, (series("pump1"),)), 506, "Path [root.plant.pump1] already exist"),
        (CreateSeries("root.plant.n", False, (series("a"), series("a"))), 503, "Path [root.plant.n.a]"),
        (
            CreateSeries("root.plant.n", False, (series("a", tags={"k": "1"}, attributes={"k": "2"}),)),
            507,
            "Tag and attribute shouldn't have the same property key",
        ),
        (
            CreateSeries("root.plant.n", False, (series("a", DataType.BOOLEAN, encoding=Encoding.TS_2DIFF),)),
            507,
            "encoding TS_2DIFF does not support BOOLEAN",
        ),
        (AlterSeries("root.plant.pump2", "none"), 508, "does not exist"),
        (AlterSeries("root.plant.pump2", "t", alias="pressure"), 507, "Alias [pressure]"),
        (CreateSeries("root.plant.n", False, (series("a" * 9_000),)), 509, "has 9013 characters; at most 8192"),
        (CreateSeries("root.plant.n", False, (series("a", alias="b" * 9_000),)), 509, "has 9013 characters"),
        (AlterSeries("root.plant.pump2", "t", alias="b" * 9_000), 509, "has 9017 characters"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_a_change_that_breaks_a_rule_is_refused_and_nothing_happens(bad: SchemaChange, code: int, message: str) -> None:
    tree = plant()
    before = (tree.dump(), tree.version)
    with pytest.raises(UserMistake) as caught:
        tree.check(bad)
    assert code == caught.value.code
    assert message in str(caught.value)
    assert before == (tree.dump(), tree.version)


def test_deleting_takes_empty_devices_and_nodes_away() -> None:
    tree = change(plant(), DeleteSeries("root.plant.*.t"))
    assert None is tree.device("root.plant.pump1")
    assert ["root.plant.pump1.inner.t", "root.plant.pump2.p"] == paths(tree, "root.plant.**")
    change(tree, DeleteSeries("root.plant.pump1.**"))
    assert ["root.plant.pump2"] == tree.child_paths(parse_pattern("root.plant"))
    change(tree, DeleteDatabase("root.plant"))
    assert (["root.ln.`a.b`"], ["ln"]) == (tree.databases(), tree.child_nodes(parse_pattern("root")))
    change(tree, CreateDatabase("root.plant"))
    assert [] == paths(tree, "root.plant.**")


def test_altering_replaces_alias_tags_and_attributes() -> None:
    tree = plant()
    before = tree.device("root.plant.pump2")
    change(tree, AlterSeries("root.plant.pump2", "t", "temp", {"unit": "C"}, {"by": "me"}))
    assert ["root.plant.pump2.t"] == paths(tree, "root.plant.*.temp")
    assert before is not None
    assert None is before.series["t"].alias


def test_the_version_grows_with_every_change() -> None:
    tree = plant()
    assert 6 == tree.version
    assert 7 == change(tree, CreateDatabase("root.x")).version


def test_a_tree_and_its_changes_come_back_from_their_bytes() -> None:
    tree = change(plant(), AlterSeries("root.plant.pump2", "t", "temp", {"unit": "°C"}, {"by": "me"}))
    assert tree.dump() == SchemaTree.load(tree.dump()).dump()
    for one in (
        CreateDatabase("root.a"),
        DeleteDatabase("root.a"),
        DeleteSeries("root.**"),
        CreateSeries("root.a.d", True, (series("s", alias="x", tags={"a": "ü"}), series("t"))),
        CreateSeries("root.a.d", False, (series("s", decimals=2), series("t", deadband=Deadband(0.5, 1, 9)))),
        AlterSeries("root.a.d", "s", "y", {"a": "b"}, {}),
    ):
        assert one == decode_change(encode_change(one))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"[1]", b'["CreateSeries","a"]', b'["CreateDatabase"]'])
def test_bytes_that_are_no_change_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFile):
        decode_change(data)


def test_a_change_of_an_unknown_kind_is_of_a_newer_version() -> None:
    with pytest.raises(NewerFormat, match=r"the schema was written by a newer Saros \(change 'Rename'\)"):
        decode_change(b'["Rename","root.a"]')


def test_what_is_written_is_lossless_whatever_was_declared() -> None:
    assert Encoding.GORILLA is stored_encoding(DataType.DOUBLE, Encoding.RLE)
    assert Encoding.TS_2DIFF is stored_encoding(DataType.INT64, Encoding.RLE)
    assert Encoding.RLE is stored_encoding(DataType.INT32, Encoding.RLE)
    assert Encoding.CHIMP is stored_encoding(DataType.DOUBLE, Encoding.CHIMP)
    assert Encoding.PLAIN is stored_encoding(DataType.TEXT, Encoding.PLAIN)


def test_no_pattern_matches_internal_series() -> None:
    tree = SchemaTree()
    internal = CreateSeries("root.a.d._saros.tags", aligned=False, series=(series("t1"),))
    for change in (CreateDatabase("root.a"), CreateSeries("root.a.d", False, (series("s"),)), internal):
        tree.apply(change)
    for text in ("root.**", "root.a.d._saros.tags.t1", "root.a.d.*.*.*"):
        found = [path for path in paths(tree, text) if "_saros" in path]
        assert [] == found
        assert not any(is_internal(device.path) for device in tree.match_devices(parse_pattern(text)))
    assert ["root.a.d.s"] == tree.child_paths(parse_pattern("root.a.d"))
    assert ["root.a.d"] == tree.nodes_at_level(parse_pattern("root.**"), 2)
    assert 1 == tree.device_count
    tree.apply(DeleteSeries("root.**"))
    assert ([], 0) == (paths(tree, "root.**"), tree.device_count)
    loaded = SchemaTree.load(tree.dump())
    assert tree.device("root.a.d._saros.tags") == loaded.device("root.a.d._saros.tags") is not None
    loaded.apply(DeleteDatabase("root.a"))
    assert (None, 0) == (loaded.device("root.a.d._saros.tags"), loaded.device_count)


def test_devices_created_alike_share_their_series() -> None:
    names = (series("t"), series("p"))
    tree = change(plant(), *(CreateSeries(f"root.plant.like{number}", True, names) for number in range(3)))
    loaded = SchemaTree.load(tree.dump())
    for found in (tree, loaded):
        devices = [found.device(f"root.plant.like{number}") for number in range(3)]
        assert 1 == len({id(device.series) for device in devices if device is not None})
    assert tree.dump() == loaded.dump()


def test_a_change_of_a_device_does_not_reach_others_created_alike() -> None:
    names = (series("t"), series("p"))
    tree = change(plant(), *(CreateSeries(f"root.plant.like{number}", True, names) for number in range(2)))
    change(tree, AlterSeries("root.plant.like0", "t", "alias"), CreateSeries("root.plant.like0", True, (series("q"),)))
    change(tree, DeleteSeries("root.plant.like0.p"))
    other = tree.device("root.plant.like1")
    assert other is not None
    assert [("t", None), ("p", None)] == [(one.measurement, one.alias) for one in other.series.values()]


@pytest.mark.parametrize("names", [("t", "t"), ("t", "x" * 8_192)])
def test_series_of_a_new_device_are_checked(names: tuple[str, str]) -> None:
    with pytest.raises(UserMistake):
        plant().check(CreateSeries("root.plant.fresh", True, tuple(map(series, names))))


NODES = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=3).map(lambda nodes: ".".join(["root", *nodes]))
SETS = [(series("a"),), (series("b"), series("a")), (series("x"), series("x")), (series("x", alias="a"),)]
CREATIONS = st.builds(CreateSeries, NODES, st.booleans(), st.sampled_from(SETS), st.booleans())


def outcome(tree: SchemaTree, changes: Sequence[SchemaChange]) -> object:
    """Apply changes; return their error, or the resulting devices."""
    try:
        change(tree, *changes)
    except UserMistake as error:
        return error.code, str(error)
    return {device.path: device for device in tree.match_devices(parse_pattern("root.**"))}


@pytest.mark.slow
@given(
    st.lists(st.builds(CreateDatabase, NODES) | CREATIONS, max_size=3),
    st.lists(CREATIONS | st.builds(CreateDatabase, NODES), max_size=4),
)
@settings(max_examples=200)
def test_a_dry_run_ends_as_the_changes_do(before: list[SchemaChange], changes: list[SchemaChange]) -> None:
    tree = change(SchemaTree(), CreateDatabase("root.a"))
    for one in before:
        outcome(tree, [one])
    known, copy = tree.dump(), SchemaTree.load(tree.dump())
    expected = outcome(copy, changes)
    paths = [f"root.{path}" for path in ("a", "a.a", "a.b", "b.a", "a.a.a", "a.a.b", "a.b.a")]
    if isinstance(expected, tuple):
        with pytest.raises(UserMistake) as caught:
            tree.dry_run(changes, paths)
        assert expected == (caught.value.code, str(caught.value))
    else:
        found = tree.dry_run(changes, paths)
        assert isinstance(expected, dict)
        assert [expected.get(path) for path in paths] == [found.device(path) for path in paths]
        assert [copy.database_of(path) for path in paths] == [found.database_of(path) for path in paths]
    assert known == tree.dump()


DELETIONS = st.builds(DeleteDatabase, NODES) | st.builds(DeleteSeries, st.sampled_from(["root.**", "root.a.*.a"]))
QUOTED = st.builds(
    CreateSeries,
    st.sampled_from(["root.a.`b.c`", "root.a.`b.c`.`d.`", "root.a._saros"]),
    st.just(False),
    st.just(SETS[0]),
)


@pytest.mark.slow
@given(st.lists(CREATIONS | QUOTED | st.builds(CreateDatabase, NODES) | DELETIONS, max_size=9))
@settings(max_examples=300)
def test_changes_applied_together_end_as_one_by_one(changes: list[SchemaChange]) -> None:
    each, together = SchemaTree(), SchemaTree()
    wanted = [CreateDatabase("root.a"), *changes]
    applied = [one for one in wanted if isinstance(outcome(each, [one]), dict)]
    together.apply_all(applied)
    assert each.dump() == together.dump()
    assert (each.version, each.device_count) == (together.version, together.device_count)
    pattern = parse_pattern("root.**")
    assert each.match_devices(pattern) == together.match_devices(pattern)
    assert each.child_paths(pattern) == together.child_paths(pattern)


@pytest.mark.parametrize("name", ["b", '`"`', '`",[]`', "`\\`", "`é \n`"])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("if_missing", [False, True])
@pytest.mark.parametrize("names", [("s",), ("s", '`",`'), ("s" * 5_000,)])
def test_creations_of_devices_come_back_whatever_their_names(
    name: str, aligned: bool, if_missing: bool, names: Sequence[str]
) -> None:
    creation = CreateSeries(f"root.a.{name}", aligned, tuple(map(series, names)), if_missing)
    assert creation == decode_change(encode_change(creation))
