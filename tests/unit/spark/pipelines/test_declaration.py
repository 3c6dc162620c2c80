"""Declarations of a pipeline file, and the errors of invalid ones."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.pipelines import Frame, Function, Pipeline, PipelineError, frame, function, load


@pytest.fixture(autouse=True)
def _modules() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("pulsarbox_pipeline_"):
            del sys.modules[name]


def passed(df: Any) -> Any:
    """Step on frames."""
    return df


def same(value: Any, ctx: Any) -> Any:
    """Step on messages."""
    return value


def test_a_file_is_a_pipeline_of_what_it_declares(tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(
        "from pulsarbox.pipelines import frame, function\n"
        "@frame(inputs='orders', output='totals', mode='update')\n"
        "def totals(df):\n    return df\n"
        "@function(inputs=['raw', 'acme/shop/raw'], output='clean', dead_letter='raw-DLQ', name='cleaning')\n"
        "def clean(value, ctx):\n    return value\n"
    )
    pipeline = load(file)
    assert (pipeline.name, [step.query for step in pipeline.steps]) == ("shop", ["totals", "cleaning"])
    totals, clean = pipeline.steps
    assert isinstance(totals, Frame)
    assert totals.reads() == {"": {"topics": "persistent://public/default/orders"}}
    assert str(totals.writes()) == "persistent://public/default/totals"
    assert totals.where == "shop.py:2"
    assert isinstance(clean, Function)
    assert clean.reads() == {"": {"topics": "persistent://public/default/raw,persistent://acme/shop/raw"}}
    assert clean.dead_letters == "persistent://public/default/raw-DLQ"
    assert load(file, "other").name == "other"


def test_a_declared_function_can_still_be_called() -> None:
    assert function(inputs="a", output="b")(same)("x", None) == "x"


def test_outputs_and_patterns() -> None:
    made = Frame(build=passed, inputs="regex:persistent://acme/shop/orders-.*", output="parquet:/data/orders")
    assert made.reads() == {"": {"topicsPattern": "acme/shop/orders-.*"}}
    assert (made.writes().kind, made.writes().place) == ("parquet", "/data/orders")
    assert Frame(build=passed, inputs="a").writes().kind == "rows"


@pytest.mark.parametrize("place", ["s3a://bucket/a//b/", "file:/data/orders", "hdfs://host:8020/orders"])
def test_files_may_be_where_only_spark_finds_them(place: str) -> None:
    for kind in ("parquet", "delta"):
        made = Frame(build=passed, inputs="a", output=f"{kind}:{place}").writes()
        assert (made.kind, made.place, str(made)) == (kind, place, f"{kind}:{place}")


def test_files_are_at_home_where_that_is_said() -> None:
    assert Frame(build=passed, inputs="a", output="json:~/x").writes().place == str(Path("~/x").expanduser())


def joined(orders: Any, refunds: Any) -> Any:
    """Step on two frames."""
    return orders


def refusal(*steps: Any, name: str = "p") -> str:
    with pytest.raises(PipelineError) as told:
        Pipeline(name, steps).check()
    return str(told.value)


def test_two_inputs_go_by_name() -> None:
    inputs = {"orders": "orders", "refunds": ["refunds", "refunds-old"]}
    step = Frame(build=joined, inputs=inputs, output="x")
    Pipeline("p", [step]).check()
    assert list(step.reads()) == ["orders", "refunds"]
    assert "must accept orders, bills" in refusal(Frame(build=joined, inputs={"orders": "o", "bills": "b"}, output="x"))


async def waits(value: Any, ctx: Any) -> Any:
    """Coroutine that is never awaited."""


def three(value: Any, ctx: Any, more: Any) -> Any:
    """Step with too many parameters."""


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Frame(build=passed, inputs=[], output="x"), "expected a topic"),
        (Frame(build=passed, inputs="a/b", output="x"), "Invalid topic name 'a/b'"),
        (Frame(build=passed, inputs="regex:(", output="x"), "is not a valid pattern"),
        (
            Frame(build=passed, inputs="a", output="orc:/data"),
            "unknown format orc:, expected one of parquet:, json:, csv:, iceberg:, delta:",
        ),
        (Frame(build=passed, inputs="a", output="parquet:"), "has no directory"),
        (Frame(build=passed, inputs="a", output="delta:"), "has no directory: expected delta:DIR"),
        (Frame(build=passed, inputs="a", output="parquet:/x", mode="update"), "support mode append only"),
        (Frame(build=passed, inputs="a", output="iceberg:/x/a.b", mode="update"), "support mode append only"),
        (Frame(build=passed, inputs="a", output="delta:/x", mode="complete"), "support mode append only"),
        (Frame(build=passed, inputs="a", output="delta:/x", sink={"txnVersion": "1"}), "option txnVersion is set by"),
        (Frame(build=passed, inputs="a", output="iceberg:orders"), "expected [DIR/]NAMESPACE.TABLE"),
        (Frame(build=passed, inputs="a", output="x", mode="all"), "mode 'all': expected one of"),  # type: ignore[arg-type]
        (Frame(build=passed, inputs="a", output="x", name="a b"), "requires a name"),
        (Frame(build=passed, inputs="a", output="x", trigger="soon"), "invalid duration"),
        (Frame(build=passed, inputs="a", output="x", options={"topic": "b"}), "option topic is set by the runner"),
        (Frame(build=same, inputs="a", output="x"), "must accept one frame"),
        (Function(process=passed, inputs="a", output="x"), "passed must take two arguments"),
        (Function(process=three, inputs="a", output="x"), "three must take two arguments"),
        (Function(process=waits, inputs="a", output="x"), "is async, and nothing would await it"),
        (Function(process=same, inputs="a", output="x", retries=-1), "retries is -1"),
        (Function(process=same, inputs="a", output="x", value="avro"), "value 'avro': expected one of"),
        (Function(process=same, inputs="a", output="x", key="key"), "key 'key': expected '__key'"),
        (Function(process=same, inputs="a", output="x", dead_letter="x"), "are the same topic"),
        (Function(process=same, inputs="a", output="csv:/x"), "a function writes to topics"),
        (Function(process=same, inputs="a", output="iceberg:/x/a.b"), "a function writes to topics"),
        (Function(process=same, inputs="a", output="delta:/x"), "a function writes to topics"),
        (Function(process=same, inputs="a", output="a"), "same -> same"),
        (Function(process=same, inputs=["a", "d"], output="x", dead_letter="d"), "same -> same"),
        (Function(process=same, inputs="regex:a.*", output="x", dead_letter="a-DLQ"), "same -> same"),
    ],
)
def test_what_is_wrong_with_a_step_is_said_with_its_place(step: Any, said: str) -> None:
    told = refusal(step)
    assert said in told
    assert "test_declaration.py:" in told or "cycle" in told


def test_what_is_wrong_between_steps() -> None:
    def step(name: str, inputs: str, output: str) -> Function:
        return Function(process=same, inputs=inputs, output=output, name=name)

    assert "2 steps are named x" in refusal(step("x", "a", "b"), step("x", "c", "d"))
    assert "one -> two -> one" in refusal(step("one", "a", "b"), step("two", "regex:b.*", "a"))
    files = [Frame(build=passed, inputs="a", output="parquet:/x", name=name) for name in ("f", "g")]
    assert "writes parquet:/x, like f" in refusal(*files)
    places = {"f": "parquet:s3a://b/x", "g": "json:s3a://b/x/"}
    files = [Frame(build=passed, inputs="a", output=place, name=name) for name, place in places.items()]
    assert "like f:" in refusal(*files)
    assert "declares no steps" in refusal()
    assert (
        "not a valid pipeline name: use letters, digits, - _ and . (at most 100), or set another with --name"
        in refusal(step("x", "a", "b"), name="a/b")
    )
    Pipeline("p", [step("x", "a", "b"), step("y", "b", "c"), step("z", "a", "c")]).check()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def f(:\n", "bad.py:1: "),
        ("import json\n\njson.loads('{')\n", "bad.py:3: JSONDecodeError: "),
        ("x = 1\n", "bad declares no steps"),
        ("import sys\nsys.exit(3)\n", "bad.py:2: the file ends the process when it is imported"),
        ("x = '\0'\n", "bad.py: "),
        ("import broken_beside\n", "broken_beside.py:2: "),
        (
            "from .beside import x\n",
            "bad.py:1: ImportError: attempted relative import with no known parent package: the",
        ),
    ],
)
def test_a_file_that_cannot_be_imported_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(text)
    (tmp_path / "broken_beside.py").write_text("\ndef f(:\n")
    with pytest.raises(PipelineError) as told:
        load(file)
    assert said in str(told.value)


def test_a_function_that_another_one_of_its_name_replaces_is_not_lost_without_a_word(tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    begin = "from pulsarbox.pipelines import frame, function\n"
    one, two = (f"@frame(inputs='{name}', output='to')\ndef totals(df):\n    return df\n" for name in "ab")
    file.write_text(begin + one + two)
    with pytest.raises(PipelineError, match=r"totals \(shop.py:2\): is declared, but its name is redefined"):
        load(file)
    made = (
        "def made(name):\n    @function(inputs=name, output='to', name=name)\n    def f(value, ctx): ...\n"
        "    return f\n"
    )
    file.write_text(f"{begin}{made}all = [made('a'), made('b')]\n")
    with pytest.raises(PipelineError, match=r"a \(shop.py:3\): .*also if only a list or a dict holds it"):
        load(file)
    file.write_text(f"{begin}{made}x, y = [made('a'), made('b')]\n")
    assert [step.query for step in load(file).steps] == ["a", "b"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"does not exist: `pulsarbox pipeline new"):
        load(tmp_path / "none.py")
    with pytest.raises(PipelineError, match="is a directory: name the file in it"):
        load(tmp_path)


def test_a_function_may_be_declared_twice() -> None:
    declared = frame(inputs="a", output="b", name="ab")(frame(inputs="c", output="d", name="cd")(passed))
    assert [step.query for step in passed.__pulsarbox_step__] == ["cd", "ab"]  # type: ignore[attr-defined]
    assert declared is passed
