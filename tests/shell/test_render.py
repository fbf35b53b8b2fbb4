from __future__ import annotations

import json

import pyarrow as pa

from saros_shell.output.render import RENDERERS, display_width, iso_times, render_fitting, render_table, render_vertical
from saros_shell.repl.shell_config import FORMATS


def batch() -> pa.RecordBatch:
    return pa.record_batch(
        {
            "Time": pa.array([0, 1_500], pa.timestamp("ms", tz="Europe/Berlin")),
            "n": pa.array([1.5, None]),
            "t": pa.array(["a,b", "温度"]),
            "b": pa.array([True, None]),
            "x": pa.array([b"\x00\xff", None]),
        }
    )


def lines(name: str) -> list[str]:
    made = batch()
    return list(RENDERERS[name](made.schema, [made]))


def test_table_aligns_numbers_right_and_counts_rows() -> None:
    assert [
        "Time                          |    n | t    | b    | x",
        "------------------------------+------+------+------+-------",
        "1970-01-01T01:00:00.000+01:00 |  1.5 | a,b  | true | 0x00ff",
        "1970-01-01T01:00:01.500+01:00 | null | 温度 | null | null",
        "(2 rows)",
    ] == lines("table")


def test_csv_quotes_and_leaves_null_empty() -> None:
    assert [
        "Time,n,t,b,x",
        '1970-01-01T01:00:00.000+01:00,1.5,"a,b",true,0x00ff',
        "1970-01-01T01:00:01.500+01:00,,温度,,",
    ] == "\n".join(lines("csv")).splitlines()


def test_csv_quotes_fields_that_would_be_read_as_others() -> None:
    texts = ["", None, "a\rb", 'say "hi"', " lead", "NaN"]
    made = pa.record_batch({"a,b": texts, "n": pa.array([1, 2, 3, 4, 5, None])})
    assert ['"a,b",n', '"",1\n,2\n"a\rb",3\n"say ""hi""",4\n lead,5\nNaN,'] == list(
        RENDERERS["csv"](made.schema, [made])
    )
    assert ["n", '""\n5'] == list(RENDERERS["csv"](pa.schema([("n", pa.int64())]), [pa.record_batch({"n": [None, 5]})]))


def test_json_lines() -> None:
    rows = [json.loads(line) for line in lines("json")]
    assert {"Time": "1970-01-01T01:00:00.000+01:00", "n": 1.5, "t": "a,b", "b": True, "x": "0x00ff"} == rows[0]
    assert rows[1]["n"] is None


def test_vertical_names_each_value() -> None:
    assert "n    | 1.5" in lines("vertical")
    assert "(2 rows)" == lines("vertical")[-1]


def test_an_empty_result_keeps_its_header() -> None:
    schema = pa.schema([("a", pa.int64())])
    assert ["a", "-", "(0 rows)"] == list(RENDERERS["table"](schema, []))


def test_times_keep_their_unit_and_change_offset_with_the_season() -> None:
    column = pa.array([0, 15_552_000_000_000_000], pa.timestamp("ns", tz="Europe/Berlin"))
    assert ["1970-01-01T01:00:00.000000000+01:00", "1970-06-30T01:00:00.000000000+01:00"] == iso_times(column)
    assert ["1969-12-31T23:30:00.000-00:30"] == iso_times(pa.array([0], pa.timestamp("ms", tz="-00:30")))


def test_floats_print_shortest_and_special_values_have_names() -> None:
    made = pa.record_batch({"f": pa.array([0.1, float("nan"), float("-inf")], pa.float32())})
    assert ["f", "0.1", "NaN", "-Infinity"] == "\n".join(RENDERERS["csv"](made.schema, [made])).splitlines()


def test_wide_characters_take_two_cells() -> None:
    assert (3, 4) == (display_width("abc"), display_width("温度"))


def test_combined_characters_take_the_cells_of_one() -> None:
    texts = ["e\u0301", "\U0001f469\u200d\U0001f52c", "\u2764\ufe0f", "ab"]
    assert [1, 2, 2, 2] == [display_width(text) for text in texts]
    made = pa.record_batch({"n": texts, "m": texts})
    columns = {display_width(line.partition(" | ")[0]) for line in list(RENDERERS["table"](made.schema, [made]))[2:6]}
    assert {2} == columns


def test_what_stands_in_a_value_does_not_command_the_terminal() -> None:
    schema = pa.schema([("n", pa.string())])
    batch = pa.RecordBatch.from_pydict({"n": ["a\nb\tc", "\x1b[31mred\x07", "日本 \u200d é"]}, schema=schema)
    assert ["a\\nb\\tc", "\\x1b[31mred\\x07", "日本 \u200d é"] == list(RENDERERS["table"](schema, [batch]))[2:5]
    vertical = list(RENDERERS["vertical"](schema, [batch]))
    assert ["n | a", "  | b\\tc", "n | \\x1b[31mred\\x07"] == [vertical[1], vertical[2], vertical[4]]
    assert '"a\nb\tc"' == list(RENDERERS["csv"](schema, [batch]))[1][:7]  # unescaped: files are for programs


def test_a_table_wider_than_the_screen_is_shown_as_blocks_if_these_fit() -> None:
    made = batch()
    width = max(map(display_width, lines("table")))
    assert lines("table") == list(render_fitting(made.schema, [made], width, 24))
    assert lines("vertical") == list(render_fitting(made.schema, [made], width - 1, 24))
    assert lines("vertical") == list(render_fitting(made.schema, [made.slice(0, 1), made.slice(1)], width - 1, 12))
    assert lines("table") == list(render_fitting(made.schema, [made], width - 1, 11))


def test_a_plan_is_no_block_for_each_line() -> None:
    made = pa.record_batch({"plan": ["Query", "  Scan of much that is far too long for the screen"]})
    name, _, *rows = RENDERERS["table"](made.schema, [made])
    assert [name, "-" * 20, *rows] == list(render_fitting(made.schema, [made], 20, 24))


def test_null_is_shown_as_the_user_wants() -> None:
    made = pa.record_batch({"n": pa.array([None, 1.5])})
    assert ["  -", "1.5"] == list(render_table(made.schema, [made], "-"))[2:4]
    assert "n | -" == list(render_vertical(made.schema, [made], "-"))[1]
    assert ["  -", "1.5"] == list(render_fitting(made.schema, [made], 80, 24, "-"))[2:4]


def test_every_format_has_a_renderer() -> None:
    assert FORMATS == tuple(RENDERERS)


def test_times_before_there_were_zones_are_the_same_instants() -> None:
    moment = pa.array([-2_840_140_800_000, None], pa.int64()).cast(pa.timestamp("ms", "Europe/Amsterdam"))
    text, absent = iso_times(moment)  # the offset of the local mean time had 32 more seconds
    assert ("1880-01-01T00:19:00.000+00:19", None) == (text, absent)


def test_a_local_time_beyond_64_bits_is_in_utc() -> None:
    first = pa.array([-(2**63) + 1, 0], pa.int64()).cast(pa.timestamp("ns", "America/New_York"))
    assert ["1677-09-21T00:12:43.145224193Z", "1969-12-31T19:00:00.000000000-05:00"] == iso_times(first)
