"""`simgate init` writes a campaign that runs as it stands."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from campaign.config import CampaignConfig, PythonTask, PythonVerifier
from campaign.configfile import load_config
from campaign.scaffold import ScaffoldError, init
from campaign.schema import json_schema


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "deeper" / "throw"
    init(folder)
    return folder


@pytest.fixture(scope="module")
def config(folder: Path) -> CampaignConfig:
    return load_config(folder).config


@pytest.fixture(scope="module")
def model(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("starter_model", folder / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_files_are_told_and_are_all_there_is(tmp_path: Path) -> None:
    written = init(tmp_path / "new")
    assert sorted(written) == sorted((tmp_path / "new").iterdir())
    assert {path.name for path in written} == {"campaign.yaml", "model.py", "campaign.schema.json"}


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    assert all(path.parent == tmp_path for path in init(tmp_path))


def test_the_editor_line_names_the_schema_beside_the_file(folder: Path) -> None:
    first = (folder / "campaign.yaml").read_text().splitlines()[0]
    name = first.removeprefix("# yaml-language-server: $schema=")
    assert json.loads((folder / name).read_text()) == json_schema()


def test_the_functions_it_names_are_in_its_module(
    config: CampaignConfig, model: ModuleType
) -> None:
    tasks = (*config.verifiers, config.simulation)
    assert tasks
    for task in tasks:
        assert isinstance(task, PythonTask)
        module, name = task.function.split(":")
        assert module == "model"
        assert callable(getattr(model, name))


def test_the_target_can_be_hit_and_the_verifier_has_work(
    config: CampaignConfig, model: ModuleType
) -> None:
    verifier = config.verifiers[0]
    assert isinstance(verifier, PythonVerifier)
    near, verdicts = [], []
    for angle in range(10, 81, 5):
        for speed in range(10, 41):
            verdict = model.check_height({"angle": angle, "speed": speed}, **verifier.arguments)
            verdicts.append(verdict["verdict"])
            if verdict["verdict"] == "pass":
                distance = model.simulate({"angle": angle, "speed": speed}, time_step=1e-2)
                near.append(abs(distance["distance"] - (config.objective.target or 0)))
            else:
                assert "throw it flatter" in verdict["reason"]
    assert min(near) < (config.objective.tolerance or 0)
    assert 0.2 < verdicts.count("reject") / len(verdicts) < 0.8


def test_the_throw_without_air_is_the_parabola(
    model: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "DRAG", 0.0)
    distance = model.simulate({"angle": 45.0, "speed": 20.0})["distance"]
    assert distance == pytest.approx(20.0**2 / 9.81, rel=1e-6)


@pytest.mark.parametrize("name", ["campaign.yaml", ".hidden", "notes"])
def test_a_folder_with_something_in_it_is_refused_by_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(ScaffoldError) as caught:
        init(tmp_path)
    assert str(caught.value) == f"{tmp_path}: holds {name}; name a new or empty folder"
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(ScaffoldError, match="a file; name a new or empty folder"):
        init(path)
    with pytest.raises(ScaffoldError, match=r"cannot be written: .*; name another one"):
        init(path / "inside")
