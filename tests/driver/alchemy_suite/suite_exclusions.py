"""The tests of SQLAlchemy's suite that are not run, each with its reason. All other tests must pass or be skipped."""

from __future__ import annotations

_NULLS = "expects a row of nulls only, which is no row in Saros"
_ZONES = "expects times without a zone; Saros returns them in the session's"
_PATHS = "has SQL of its own, with tables that are no paths"
_DDL = "tests CREATE TABLE and constraints, which the dialect refuses; here they are the test dialect's"
_INDEXES = "creates indexes, foreign keys, temporary tables, or tables of another schema"
_INTO = "INSERT from SELECT is SELECT INTO in Saros"
_EXPRESSIONS = "LIMIT and OFFSET take numbers, and no expressions"
_CONCAT = "|| of texts is refused: use func.concat"

#: The reasons for exclusions, keyed by a pattern (with * as a wildcard) that a class or `class.test` matches.
EXCLUDED = {
    "BizarroCharacterTest": _INDEXES,
    "BooleanTest.test_null": _NULLS,
    "BooleanTest.test_render_literal_bool": _NULLS,
    "CastTypeDecoratorTest": "casts to a type that is not Saros' own name of it",
    "ComponentReflectionTest": _INDEXES,
    "ComponentReflectionTestExtra": _INDEXES,
    "CompositeKeyReflectionTest": _INDEXES,
    "CompoundSelectTest": "UNION is refused",
    "DateTest.test_null": _NULLS,
    "DateTest.test_select_direct": "a date that is compared with no DATE is a time",
    "DateTimeCoercedToDateTimeTest": "writes times into a DATE",
    "DateTimeMicrosecondsTest.test_null": _NULLS,
    "DateTimeMicrosecondsTest.test_round_trip*": _ZONES,
    "DateTimeTest.test_null": _NULLS,
    "DateTimeTest.test_round_trip*": _ZONES,
    "DateTimeTest.test_select_direct": _ZONES,
    "DistinctOnTest": "DISTINCT is refused",
    "ExceptionTest.test_integrity_error": "a row with the key of another replaces it",
    "ExistsTest": "subqueries are refused",
    "ExpandingBoundInTest.test_*typed_str_in": _PATHS,
    "FetchLimitOffsetTest.test_*expr*": _EXPRESSIONS,
    "FetchLimitOffsetTest.test_limit_offset_nobinds": "runs the text by itself, whose rows begin with the time",
    "FetchLimitOffsetTest.test_limit_render_multiple_times": "subqueries are refused",
    "FutureTableDDLTest": _DDL,
    "HasIndexTest": _INDEXES,
    "HasTableTest": _INDEXES,
    "IdentityAutoincrementTest": "there are no identity columns",
    "InsertBehaviorTest.test_insert_from_select*": _INTO,
    "IntegerTest.test_literal": _NULLS,
    "IsOrIsNotDistinctFromTest": "there is no IS DISTINCT FROM",
    "JoinTest": "joins are refused",
    "LastrowidTest.test_autoincrement_on_insert": "there are no generated keys",
    "LikeFunctionsTest.test_*_sqlexpr": "patterns of LIKE are texts, and no expressions",
    "LongNameBlowoutTest": _DDL,
    "NameDenormalizeTest": _PATHS,
    "NumericTest.test_float_as_decimal": _NULLS,
    "NumericTest.test_numeric_null_as_*": _NULLS,
    "NumericTest.test_render_literal_*": _NULLS,
    "OrderByLabelTest.test_composed_multiple": _CONCAT,
    "OrderByLabelTest.test_group_by_composed": "GROUP BY a column is refused",
    "PostCompileParamsTest": "compares the SQL, with tables that are no paths",
    "QuotedNameArgumentTest": _INDEXES,
    "ReturningGuardsTest": "RETURNING is refused before it is sent, not by the database",
    "RowFetchTest.test_row_w_scalar_select": "subqueries are refused",
    "SameNamedSchemaTableTest": _INDEXES,
    "StringTest.test_concatenate_*": _CONCAT,
    "StringTest.test_literal*": _NULLS,
    "TableDDLTest": _DDL,
    "TableViaSelectTest": "there is no CREATE TABLE AS",
    "TextTest.test_literal*": _NULLS,
    "TextTest.test_text_null_strings": _NULLS,
    "TimeMicrosecondsTest": "there is no type for a time of day",
    "TimeTest": "there is no type for a time of day",
    "TrueDivTest.*untyped_function*": "there is no function nullif",
    "UnicodeTextTest.test_literal*": _NULLS,
    "UnicodeTextTest.test_null_strings_text": _NULLS,
    "UnicodeVarcharTest.test_literal*": _NULLS,
    "UnicodeVarcharTest.test_null_strings_varchar": _NULLS,
    "UuidTest": "there is no type for UUIDs",
}
