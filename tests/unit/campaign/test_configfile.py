"""Configurations as files: what is accepted, what is refused and in which words."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from campaign.config import CampaignConfig
from campaign.configfile import config_from_mapping, load_config
from campaign.problems import ConfigError, Problem

CASES = Path(__file__).parents[2] / "cases"
ACCEPTED = sorted((CASES / "accepted").glob("*.yaml"))
REFUSED = sorted((CASES / "refused").glob("*.yaml"))
GOOD = CASES / "accepted" / "every_kind_of_task.yaml"


def header(path: Path, word: str) -> list[str]:
    """The lines ``# word: …`` of a case."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix(f"# {word}: ") for line in lines if line.startswith(f"# {word}: ")]


def at(data: Any, path: str) -> Any:
    for part in path.split("."):
        data = data[int(part)] if isinstance(data, list) else data[part]
    return data


def problems(path: Path, *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(path, overrides)
    return [str(problem) for problem in caught.value.problems]


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "campaign.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_there_are_enough_cases() -> None:
    assert len(REFUSED) >= 55
    assert len(ACCEPTED) >= 12


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_a_broken_file_is_refused_with_all_its_problems_in_order(path: Path) -> None:
    expected = header(path, "expect")
    found = problems(path)
    # A line that ends in … leaves the wording to the YAML library.
    shown = [
        f"{one.split('not YAML')[0]}not YAML…" if want.endswith("…") else one
        for one, want in zip(found, expected, strict=False)
    ]
    assert shown + found[len(shown) :] == expected


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_a_good_file_means_what_it_says(path: Path) -> None:
    held = load_config(path).config.model_dump(mode="json")
    for line in header(path, "holds"):
        place, value = line.split(" = ", 1)
        found = at(held, place)
        assert (place, found, type(found)) == (place, json.loads(value), type(json.loads(value)))


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_a_config_survives_json(path: Path) -> None:
    config = load_config(path).config
    plain = json.loads(json.dumps(config.model_dump(mode="json"), allow_nan=False))
    assert CampaignConfig.model_validate(config.model_dump(mode="json")) == config
    assert config_from_mapping(plain) == config


def test_a_folder_stands_for_its_campaign_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, GOOD.read_bytes())
    monkeypatch.chdir(tmp_path.parent)
    loaded = load_config(Path(tmp_path.name))
    assert (loaded.folder, loaded.path) == (tmp_path, tmp_path / "campaign.yaml")
    assert loaded == load_config(tmp_path / "campaign.yaml")


def test_a_later_problem_finds_its_line(tmp_path: Path) -> None:
    loaded = load_config(write(tmp_path, "# first\n" + GOOD.read_text()))
    line = 1 + GOOD.read_text().splitlines().index("  function: package.model:Solver.run") + 1
    found = loaded.problem(("simulation", "function"), "no such module; write it")
    assert found == Problem("simulation.function", "no such module; write it", line)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"name: caf\xe9\n", "line 1: byte 0xe9 is not UTF-8; save the file as UTF-8"),
        (b"a: 1\nb: \x00\n", "line 2: the control character '\\x00'; remove it"),
        (
            b"#" * (1 << 20) + b"\n",
            "more than 1,048,576 bytes; a configuration is a small text file",
        ),
        ("a: 1\n".encode("utf-16"), "line 1: byte 0xff is not UTF-8; save the file as UTF-8"),
    ],
    ids=["latin-1", "control character", "too large", "utf-16"],
)
def test_a_file_that_is_no_text_is_refused(content: bytes, expected: str, tmp_path: Path) -> None:
    assert problems(write(tmp_path, content)) == [expected]


def test_an_endless_file_is_refused_unread() -> None:
    assert problems(Path("/dev/zero")) == [
        "more than 1,048,576 bytes; a configuration is a small text file"
    ]


def test_a_byte_order_mark_is_no_problem(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, b"\xef\xbb\xbf" + GOOD.read_bytes())).config.name == "case"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("absent.yaml", "no such file; give a YAML file or a folder with a campaign.yaml"),
        (
            "empty",
            "no campaign.yaml in this folder; give a YAML file or a folder with a campaign.yaml",
        ),
    ],
)
def test_a_path_without_a_config_is_refused(name: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert problems(tmp_path / name) == [expected]
    assert problems(Path("a\0b"))[0].startswith("cannot be read: ")


def test_the_error_lists_every_problem_and_survives_pickling() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(CASES / "refused" / "bounds_reversed.yaml")
    error = caught.value
    again = pickle.loads(pickle.dumps(error))
    assert (again.problems, again.source, str(again)) == (error.problems, error.source, str(error))
    assert str(error).splitlines() == [
        f"{CASES / 'refused' / 'bounds_reversed.yaml'}: 2 problems",
        "  line 6, parameters.x: min 1.0 is not below max 0.0; give min < max",
        "  line 7, parameters.n: min 5 is not below max 5; give min < max",
    ]


def test_a_flood_of_problems_is_cut_with_their_number(tmp_path: Path) -> None:
    text = GOOD.read_text() + "".join(f"key_{index}: 1\n" for index in range(300))
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path, text))
    assert str(caught.value).count("\n") == 101
    assert "+100 more problems" in str(caught.value)
    assert str(caught.value).endswith("+101 more")


def test_overrides_are_yaml_at_dotted_places() -> None:
    config = load_config(
        GOOD,
        [
            "rounds=7",
            "verifiers.0.walltime=20s",
            "verifiers[1].walltime=1m",
            "verifiers[1].command[0]='010'",
            'verifiers[1].files["in.txt"]=other.txt',
            "budgets.node_hours=.5",
            "policy.verifier_failure=reject",
            "agent=surrogate",
            "name=no",
            "parameters.y={type: int, min: 1, max: 3}",
        ],
    ).config
    assert (config.rounds, config.name, list(config.parameters)) == (7, "no", ["x", "y"])
    assert [verifier.walltime for verifier in config.verifiers] == [20, 60]
    second = config.model_dump(mode="json")["verifiers"][1]
    assert second["command"][0] == "010"
    assert second["files"] == {"in.txt": "other.txt", "sub/data.txt": "data.txt"}
    assert config.budgets.cap("node_hours") == CampaignConfig.model_validate(
        config.model_dump(mode="json")
    ).budgets.cap("node_hours")
    assert config.policy.verifier_failure == "reject"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("rounds", "the override 'rounds'; write a.b=value, or a[0].b=value in a list"),
        ("=3", "the override '=3'; write a.b=value, or a[0].b=value in a list"),
        ("a..b=3", "the override 'a..b=3'; write a.b=value, or a[0].b=value in a list"),
        (
            "simulation.waltime=3s",
            "simulation.waltime: no such key; did you mean 'walltime'? known: 'ranks', 'nodes', "
            "'walltime', 'retries', 'retry_on', 'executor', 'env', 'output', 'kind', 'function', "
            "'arguments', 'launcher', 'guard', 'dry_run'",
        ),
        (
            "budget.node_hours=3",
            "budget: no such key; did you mean 'budgets'? known: 'version', 'name', "
            "'description', 'parameters', 'objective', 'rounds', 'batch_size', 'seed', 'agent', "
            "'defaults', 'expect', 'expectations', 'judge', 'verifiers', 'simulation', "
            "'budgets', 'executors', 'job', 'policy', 'stop_grace'",
        ),
        (
            "verifiers[2].walltime=3s",
            "verifiers[2].walltime: in the override, no item 2 in verifiers; it has 0 to 1",
        ),
        (
            "verifiers.first.walltime=3s",
            "verifiers.first.walltime: in the override, no item 'first' in verifiers; "
            "it has 0 to 1",
        ),
        (
            "rounds.x=3",
            "rounds.x: in the override, rounds is 2 (a number) with nothing inside; "
            "set it as a whole",
        ),
        ("rounds=3.5", "rounds: found 3.5 (a number); give a whole number"),
        ("rounds=", "rounds: found nothing; give a whole number"),
        ("name=true", "name: found true (a boolean); give text, in quotes: 'true'"),
        (
            "description={a: 1, a: 2}",
            "description: in the override, given twice, on lines 1 and 1; keep one",
        ),
    ],
)
def test_an_override_that_does_not_fit_is_refused(override: str, expected: str) -> None:
    assert problems(GOOD, override)[0] == expected


def test_a_broken_override_comes_with_the_problems_of_the_file() -> None:
    found = problems(CASES / "refused" / "rounds_zero.yaml", "seed=[1", "name=a b")
    assert len(found) == 3
    assert found[0].startswith("seed: in the override, not YAML at column ")
    assert found[1].startswith("name: found 'a b' (text); give letters")
    assert found[2] == "line 7, rounds: found 0 (a number); give at least 1"


def test_equal_values_behind_one_anchor_are_overridden_apart() -> None:
    path = CASES / "accepted" / "anchors_and_merges.yaml"
    config = load_config(path, ["parameters.x.max=5"]).config.model_dump()
    assert [config["parameters"][name]["max"] for name in "xyz"] == [5, 1, 2]


def refusal(load: Callable[[], object]) -> ConfigError | None:
    """The refusal, None if there was none; everything else is an error of the test."""
    try:
        load()
    except ConfigError as error:
        return error
    return None


BITS = [
    *("version:", "name:", "parameters:", "verifiers:", "simulation:", "kind:", "x", "1", "1e3"),
    *("- ", "[", "]", "{", "}", ", ", "&a ", "*a", "!t ", "!!str ", "<<: ", ": ", "? ", "| ", "> "),
    *("'", '"', "# ", "%", "@", "`", "\t", "\n", "\n  ", " ", "---", "...", "\\", "true", "~"),
]


@given(content=st.text().map(str.encode) | st.binary(max_size=200))
def test_no_content_raises_anything_but_a_config_error(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = write(tmp_path_factory.getbasetemp(), content)
    assert refusal(lambda: load_config(path)) is not None


@given(text=st.lists(st.sampled_from(BITS), max_size=30).map("".join))
def test_no_text_like_yaml_raises_anything_but_a_config_error(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = write(tmp_path_factory.getbasetemp(), text)
    assert refusal(lambda: load_config(path)) is not None
    refusal(lambda: load_config(GOOD, [text, f"simulation.{text}", f"simulation.arguments={text}"]))


keys = st.sampled_from([*CampaignConfig.model_fields, "kind", "type", "min", "max", "choices"])
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["float", "int", "categorical", "python", "command", "mpi", "local", "10s"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(keys | st.text(max_size=8), inner, max_size=6)
    ),
    max_leaves=30,
)
whole: dict[str, Any] = load_config(GOOD).config.model_dump(mode="json")


def places(data: Any, loc: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in plain data but the whole."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield (*loc, key)
            yield from places(value, (*loc, key))


def placed(data: Any, loc: tuple[str | int, ...], value: Any) -> Any:
    if not loc:
        return value
    copy: Any = dict(data) if isinstance(data, dict) else list(data)
    copy[loc[0]] = placed(copy[loc[0]], loc[1:], value)
    return copy


@given(st.sampled_from([*places(whole)]), values, st.dictionaries(keys, values, max_size=2))
def test_no_value_at_any_place_raises_anything_but_a_config_error(
    loc: tuple[str | int, ...], value: Any, more: dict[str, Any]
) -> None:
    data = placed(whole, loc, value) | more
    refused = refusal(lambda: config_from_mapping(data))
    if refused is not None:
        assert all(problem.message for problem in refused.problems)
        assert "input should" not in str(refused).lower()  # pydantic's wording
        return
    plain = config_from_mapping(data).model_dump(mode="json")
    again = json.loads(json.dumps(plain, allow_nan=False))
    assert config_from_mapping(again) == config_from_mapping(data)
