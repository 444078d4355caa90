"""What a policy accepts comes from its options class, with type and description."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from monitor.errors import ConfigError
from policies.options import arguments_of, build_options
from policies.registry import POLICIES, check_arguments


@dataclass(frozen=True, kw_only=True)
class ToyOptions:
    folder: Annotated[str, "Folder of the toy."]
    gain: Annotated[float, "Factor on the actions."] = 1.0


def loose(**kwargs: Any) -> Any:
    return kwargs


def test_an_options_class_says_name_type_default_and_description() -> None:
    folder, gain = arguments_of(ToyOptions) or ()
    assert (folder.name, folder.type, folder.required) == ("folder", "str", True)
    assert (gain.default, gain.description) == (1.0, "Factor on the actions.")


def test_any_keyword_is_not_refused_where_all_are_taken() -> None:
    assert arguments_of(loose) is None


def test_options_are_checked_before_they_are_built() -> None:
    assert build_options("toy", ToyOptions, {"folder": "a", "gain": 2.0}).gain == 2.0
    with pytest.raises(ConfigError, match=r"policy 'toy': .*'gian'; did you mean 'gain'"):
        build_options("toy", ToyOptions, {"folder": "a", "gian": 2.0})
    with pytest.raises(ConfigError, match="policy 'toy' needs folder=: Folder of the toy"):
        build_options("toy", ToyOptions, {})


@pytest.mark.parametrize("name", [name for name, spec in POLICIES.items() if spec.options])
def test_every_option_of_ours_is_described(name: str) -> None:
    arguments = POLICIES[name].arguments()
    assert arguments
    assert all(one.description.endswith(".") for one in arguments)
    assert set(POLICIES[name].defaults) <= {one.name for one in arguments}


def test_an_argument_of_another_name_is_refused_with_the_nearest() -> None:
    check_arguments("openvla-mini", ["samples", "temperature"])
    with pytest.raises(ConfigError, match=r"policy 'openvla-mini': .*did you mean 'samples'\?"):
        check_arguments("openvla-mini", ["sample"])
    with pytest.raises(ConfigError, match="it takes none, got 'x'"):
        check_arguments("hold", ["x"])
