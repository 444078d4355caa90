"""The project as a whole: what the wheel holds, what imports what, what tracked files may say."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PACKAGES = ("monitor", "policies", "envs")
TRAINING = "policies/learn/"
"""Runs from a checkout only; the wheel leaves it out."""

HOSTS = tuple(
    ".".join(parts)
    for parts in [
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("deb", "debian", "org"),
        ("download", "pytorch", "org"),
        ("registry", "npmjs", "org"),
        ("snapshot", "debian", "org"),
    ]
)
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|opt)/\w")


def _run(*command: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("needs a git checkout, and git")
    names = _run("git", "-c", f"safe.directory={ROOT}", "ls-files", "-z").split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def _texts(paths: list[Path]) -> Iterator[tuple[Path, str]]:
    for path in paths:
        content = path.read_bytes()
        if b"\0" not in content:
            yield path, content.decode(errors="replace")


# ---- the wheel -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def test_the_wheel_holds_our_three_packages_and_nothing_else(wheel: list[str]) -> None:
    tops = {name.partition("/")[0] for name in wheel}
    (info,) = (top for top in tops if top.endswith(".dist-info"))
    assert tops == {*PACKAGES, info}
    assert f"{info}/licenses/LICENSE" in wheel


def test_the_wheel_holds_what_is_no_module(wheel: list[str], tracked: list[Path]) -> None:
    """Type marker, configurations, robot descriptions, weights: whatever lies in the packages."""
    inside = {path.relative_to(ROOT).as_posix() for path in tracked}
    wanted = {name for name in inside if name.partition("/")[0] in PACKAGES}
    assert {name for name in wanted if not name.startswith(TRAINING)} <= set(wheel)
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(wheel)
    configs = {name.partition("/")[2] for name in inside if name.startswith("configs/")}
    assert configs
    assert {f"monitor/_configs/{name}" for name in configs} <= set(wheel)


def test_the_wheel_leaves_training_out_and_imports_none_of_it(wheel: list[str]) -> None:
    assert not [name for name in wheel if name.startswith(TRAINING)]
    sources = [ROOT / name for name in wheel if name.endswith(".py") and (ROOT / name).is_file()]
    assert [path for path in sources if "policies.learn" in path.read_text("utf-8")] == []


def test_the_sdist_holds_all_that_is_tracked(tmp_path: Path, tracked: list[Path]) -> None:
    """But for what only the repository's own pages need."""
    _run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path))
    (path,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {name.relative_to(ROOT).as_posix() for name in tracked}
    assert {name for name in wanted - held if not name.startswith(".github/")} == set()


# ---- imports -------------------------------------------------------------------------------

LOADED = """
import json, sys
for name in sys.argv[1:]:
    __import__(name)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""

ALONE = """
import gc, importlib, os, sys
# Loaded once, so that a fork is cheap: what is not ours.
from scipy import stats
from scipy.spatial import transform
from transformers import AutoModel, DynamicCache, LlamaForCausalLM, PI0ForConditionalGeneration
from transformers import BeitModel, Dinov2WithRegistersModel, Gemma2Model, ZoeDepthConfig
for name in ("mani_skill.envs", "typer", "rich.console", "pydantic.types", "yaml", "msgspec",
             "websockets.sync.client", "websockets.sync.server", "msgpack", "safetensors.torch"):
    importlib.import_module(name)
gc.freeze()
gc.disable()
names = set(sys.argv[1:])

def visit(inside):
    # A module's own packages are imported before it whoever imports it, so a package's process is
    # the start of those of its parts.
    for name in sorted(name for name in names if name.rpartition(".")[0] == inside):
        child = os.fork()
        if child == 0:
            try:
                importlib.import_module(name)
            except BaseException as error:
                print(f"{name}: {error!r}", flush=True)
                os._exit(1)
            visit(name)
            os._exit(0)
        os.waitpid(child, 0)

visit("")
"""


def _loaded(*modules: str) -> set[str]:
    return set(json.loads(_run(sys.executable, "-c", LOADED, *modules)))


def _modules() -> list[str]:
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if parts[-1] != "__main__":
                found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


def test_the_core_loads_only_its_four_dependencies() -> None:
    theirs = _loaded("msgspec", "numpy", "pydantic.types", "yaml")
    ours = _loaded("monitor.pipeline") - theirs - set(sys.stdlib_module_names)
    assert {name for name in ours if not name.startswith("_sysconfigdata")} == {"monitor"}


@pytest.mark.parametrize(
    ("module", "banned"),
    [
        ("envs", {"gymnasium", "torch", "mani_skill", "sapien"}),
        ("policies", {"torch", "transformers", "safetensors"}),
        ("monitor.cli.app", {"torch", "scipy", "matplotlib", "gymnasium", "transformers"}),
        ("monitor.doctor", {"torch", "scipy", "sapien", "gymnasium"}),
    ],
)
def test_listing_and_help_load_nothing_heavy(module: str, banned: set[str]) -> None:
    assert _loaded(module) & banned == set()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_each_module_imports_alone() -> None:
    """No module needs another one imported first: an import cycle shows only from some sides."""
    modules = _modules()
    assert len(modules) > 30
    assert _run(sys.executable, "-W", "ignore", "-c", ALONE, *modules) == ""


# ---- tracked files -------------------------------------------------------------------------


def test_no_package_under_tests() -> None:
    """``tests/monitor/__init__.py`` would shadow the real ``monitor`` in every import mode."""
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_no_registry_host_and_no_machine_path(tracked: list[Path]) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path, text in _texts(tracked)
        for word in (*(host for host in HOSTS if host in text), *MACHINE_PATH.findall(text))
    ]
    assert found == []


def test_the_licence_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_scripts_are_sound_and_runnable(tracked: list[Path]) -> None:
    scripts = [path for path in tracked if path.suffix == ".sh"] + [ROOT / ".ci/run"]
    for script in scripts:
        _run("bash", "-n", str(script))
    assert os.access(ROOT / ".ci/run", os.X_OK)


# ---- what README promises ------------------------------------------------------------------


def _readme_commands() -> list[str]:
    """Lines of README's code blocks, continuation lines joined."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.split("#")[0].strip().removeprefix("$ ") for line in lines]


def test_scripts_named_in_readme_exist() -> None:
    commands = [line for line in _readme_commands() if re.match(r"(bash|sh) ", line)]
    missing = [line for line in commands if not (ROOT / line.split()[1]).is_file()]
    assert missing == []


def test_commands_named_in_readme_exist_with_their_options() -> None:
    from typer.main import get_command

    from monitor.cli.app import app

    wrong = []
    for line in _readme_commands():
        words = line.split()
        if words[:1] != ["vlawatch"]:
            continue
        command, rest = get_command(app), words[1:]
        while rest and rest[0] in getattr(command, "commands", {}):
            command, rest = command.commands[rest[0]], rest[1:]  # type: ignore[attr-defined]
        known = {
            option
            for parameter in command.params
            for option in (*parameter.opts, *parameter.secondary_opts)
        } | {"-h", "--help"}
        given = {word.split("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
        if rest == words[1:] and not given <= known:
            wrong.append(f"no such command: {line}")
        elif not given <= known:
            wrong.append(f"{sorted(given - known)} unknown: {line}")
    assert wrong == []


# ---- extras --------------------------------------------------------------------------------


def test_every_extra_is_satisfied_here() -> None:
    """The environment of the tests holds all of them, within the bounds that we state."""
    metadata = importlib.metadata.metadata("vlawatch")
    extras = metadata.get_all("Provides-Extra") or []
    assert {"cli", "sim", "vla", "report", "serve", "all", "dev"} <= set(extras)
    wrong = []
    for line in importlib.metadata.requires("vlawatch") or []:
        requirement = Requirement(line)
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in ["", *extras]):
            continue
        if requirement.name == "vlawatch":
            continue
        version = importlib.metadata.version(requirement.name)
        if not requirement.specifier.contains(version, prereleases=True):
            wrong.append(f"{requirement.name} {version} is not {requirement.specifier}")
    assert wrong == []
