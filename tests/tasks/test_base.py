import pytest

from fastglt.tasks import Scores


class TestScores:
    @pytest.mark.parametrize(
        ("one", "other", "better"),
        [
            ((0.8, 9.0), (0.7, 0.1), True),  # the score comes first
            ((0.7, 0.1), (0.8, 9.0), False),
            ((0.8, 0.5), (0.8, 0.6), True),  # then the lower loss
            ((0.8, 0.6), (0.8, 0.5), False),
            ((0.8, 0.5), (0.8, 0.5), False),  # equals are not better: the earlier one stays
        ],
    )
    def test_validation_decides(self, one: tuple[float, float], other: tuple[float, float], better: bool) -> None:
        first, second = (Scores(val=val, val_loss=loss, test=test) for (val, loss), test in ((one, 0), (other, 1)))
        assert first.better_than(second) == better
