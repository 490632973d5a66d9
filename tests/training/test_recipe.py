import pytest

from fastglt import InputError
from fastglt.training.recipe import Recipe


@pytest.mark.parametrize(
    ("setting", "value", "rule"),
    [
        ("lr", 0.0, "lr must be positive"),
        ("lr", float("nan"), "lr must be positive"),
        ("weight_decay", -1.0, "weight_decay must not be negative"),
        ("weight_decay", float("nan"), "weight_decay must not be negative"),
    ],
)
def test_impossible_settings_are_refused(setting: str, value: float, rule: str) -> None:
    with pytest.raises(InputError, match=rf"{rule} \(got {value}\)"):
        Recipe(**{setting: value})  # type: ignore[arg-type]
