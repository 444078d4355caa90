"""What an environment does not have is refused before anything is run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from monitor.cli.names import check_disturbance, check_expert, check_scenes
from monitor.errors import ConfigError
from monitor.rollout import EpisodeSpec


def env(**attributes: Any) -> Any:
    return SimpleNamespace(unwrapped=SimpleNamespace(**attributes))


def test_a_mistyped_disturbance_is_answered_with_the_near_one() -> None:
    known = env(disturbances=("object_pushed", "lights"))
    check_disturbance(known, "object_pushed")
    with pytest.raises(ConfigError, match="object_pushed"):
        check_disturbance(known, "object_pshed")


def test_an_environment_that_lists_none_is_asked_itself() -> None:
    check_disturbance(env(), "earthquake")


def test_a_scene_beyond_the_last_one_is_refused() -> None:
    check_scenes(env(scene_count=24), [EpisodeSpec(scene=23)])
    with pytest.raises(ConfigError, match=r"scene 24 does not exist; .* scenes 0 to 23"):
        check_scenes(env(scene_count=24), [EpisodeSpec(scene=0), EpisodeSpec(scene=24)])


@pytest.mark.parametrize("count", [None, 24])
def test_scenes_that_the_environment_does_not_count_are_its_own_matter(count: int | None) -> None:
    laid = EpisodeSpec(scene=400, options={"layout": {}} if count else {})
    check_scenes(env(scene_count=count), [laid])


def test_an_expert_is_asked_only_where_there_is_one() -> None:
    check_expert(env(expert="module:function"))
    with pytest.raises(ConfigError, match="no scripted expert"):
        check_expert(env(expert=None))
