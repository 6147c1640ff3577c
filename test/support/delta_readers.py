"""Foreign readers and writers of Delta tables, for tests: delta-rs (`deltalake`) and DuckDB.

Reads a JSON object a line: `code` is run with the members of `args` as variables, and what it leaves in `result` is
answered. Values that JSON has no form for are answered as text.
"""
import json
import sys
import traceback

import duckdb
from arro3.core import Array, DataType, Table
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake

duckdb.sql("set timezone='UTC'")


def sql(table, text, **options):
    """Rows of a query by delta-rs over a table that the query calls `t`."""
    read = QueryBuilder().register("t", DeltaTable(table, **options)).execute(text).read_all()
    return list(map(list, zip(*[read.column(i).to_pylist() for i in range(read.num_columns)])))


def duck(table, text):
    """Rows of a query by DuckDB over the Parquet files of a table, called `t`."""
    files = DeltaTable(table).file_uris()
    duckdb.read_parquet(files, union_by_name=True).create_view("t", replace=True)
    return [list(row) for row in duckdb.sql(text).fetchall()]


def rows(**columns):
    """A table of text and int64 columns."""
    def array(values):
        return Array(values, DataType.utf8() if isinstance(values[0], str) else DataType.int64())
    return Table.from_pydict({name: array(values) for name, values in columns.items()})


for line in sys.stdin:
    request = json.loads(line)
    scope = {**globals(), **request["args"], "result": None}
    try:
        exec(request["code"], scope)
        answer = {"result": scope["result"]}
    except Exception:
        answer = {"error": traceback.format_exc()}
    print(json.dumps({"id": request["id"], **answer}, default=str), flush=True)
