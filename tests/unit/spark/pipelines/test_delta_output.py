"""Output of frames to Delta tables: settings, checks, and the transaction of an epoch, without the jar."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pulsarbox.pipelines import Frame, PipelineError
from pulsarbox.spark.lakehouse.table_place import TableError
from pulsarbox.spark.pipelines import delta_output
from pulsarbox.spark.pipelines.delta_output import EXTENSION, DeltaEpochs, prepare, settings

EXTENSIONS = "spark.sql.extensions"
CATALOG = "spark.sql.catalog.spark_catalog"
PARTITIONS = "spark.databricks.delta.snapshotPartitions"


def step(place: str = "/lake/orders", **sink: str) -> Frame:
    return Frame(build=lambda df: df, inputs="orders", output=f"delta:{place}", name="orders", sink=sink)


class Writing:
    """Batch writer that records its calls."""

    def __init__(self) -> None:
        self.calls: dict[str, Any] = {"options": {}}

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> "Writing":
            if name == "options":
                self.calls["options"] |= kwargs
            else:
                self.calls[name] = args
            return self

        return call


def spark_with(jar: bool, version: str = "4.3.0") -> Any:
    """Return a session whose JVM has Delta's classes or not."""
    utils = SimpleNamespace(classIsLoadable=lambda name: jar and name == EXTENSION)
    hadoop = SimpleNamespace(fs=SimpleNamespace(Path=str))
    packages = SimpleNamespace(spark=SimpleNamespace(util=SimpleNamespace(Utils=utils)), hadoop=hadoop)
    return SimpleNamespace(
        version=version,
        _jvm=SimpleNamespace(org=SimpleNamespace(apache=packages)),
        conf=SimpleNamespace(get=lambda name, default: "set", set=None),
    )


class Files:
    """Hadoop's file system, with these names below /lake/orders."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def exists(self, path: str) -> bool:
        return path == "/lake/orders" or path.rpartition("/")[2] in self._names

    def listStatus(self, path: str) -> list[str]:  # noqa: N802 - Hadoop's name
        return list(self._names)


def test_the_extension_of_delta_joins_those_of_the_user() -> None:
    assert settings({}) == {EXTENSIONS: EXTENSION}
    found = settings({EXTENSIONS: "a.B", "x": "y"})
    assert found == {EXTENSIONS: f"a.B,{EXTENSION}", "x": "y"}
    assert settings(found) == found


@pytest.mark.parametrize("given", [{}, {CATALOG: "a.C", PARTITIONS: "7"}])
def test_settings_of_the_user_are_kept(given: dict[str, str]) -> None:
    found = dict(given)
    conf = SimpleNamespace(get=found.get, set=found.__setitem__)
    delta_output._configure(SimpleNamespace(conf=conf, sparkContext=SimpleNamespace(defaultParallelism=2)))  # type: ignore[arg-type]
    assert found == (given or {CATALOG: "org.apache.spark.sql.delta.catalog.DeltaCatalog", PARTITIONS: "2"})


def test_a_missing_jar_is_reported_with_the_package_to_add() -> None:
    with pytest.raises(PipelineError) as told:
        prepare(spark_with(jar=False), step(), None, Files())  # type: ignore[arg-type]
    for said in ("output delta:/lake/orders: Spark 4.3.0 has no jar of Delta", "io.delta:delta-spark_2.13:VERSION"):
        assert said in str(told.value)


def test_a_directory_with_other_files_is_refused() -> None:
    with pytest.raises(PipelineError, match=r"output delta:/lake/orders: it has files, but is no Delta table"):
        prepare(spark_with(jar=True), step(), None, Files("part-0.parquet"))  # type: ignore[arg-type]
    for accepted in (Files(), Files("part-0.parquet", "_delta_log")):
        delta_output._check_directory(spark_with(jar=True), step(), accepted)
    delta_output._check_directory(spark_with(jar=True), step("/lake/none"), Files("part-0.parquet"))


def test_a_jar_for_another_spark_is_final_and_other_errors_are_not() -> None:
    said = "java.lang.NoSuchMethodError: 'void org.apache.spark.sql.execution.LogicalRDD.<init>'"
    found = delta_output._failed(step(), "4.3.0", said)
    assert isinstance(found, PipelineError) and "does not fit Spark 4.3.0 (NoSuchMethodError): add" in str(found)
    found = delta_output._failed(step(), "4.3.0", "java.net.ConnectException: refused")
    assert isinstance(found, TableError)
    assert str(found) == "orders: output delta:/lake/orders cannot be used: java.net.ConnectException: refused"


def test_an_epoch_is_a_transaction_of_the_query(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text(json.dumps({"id": "query-1"}))
    rows = SimpleNamespace(write=Writing())
    DeltaEpochs(step(partitionby=" day, region", mergeSchema="true"), str(tmp_path))(rows, 7)  # type: ignore[arg-type]
    assert rows.write.calls == {
        "format": ("delta",),
        "options": {"mergeSchema": "true", "txnAppId": "query-1", "txnVersion": "7"},
        "partitionBy": ("day", "region"),
        "mode": ("append",),
        "save": ("/lake/orders",),
    }
