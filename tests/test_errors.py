import pytest

from fastglt.errors import FastGLTError, InputError, MachineError, unknown_name


def test_both_families_have_one_root_and_a_builtin_parent() -> None:
    assert issubclass(InputError, FastGLTError)
    assert issubclass(InputError, ValueError)
    assert issubclass(MachineError, FastGLTError)
    assert issubclass(MachineError, RuntimeError)


def test_exit_codes_tell_the_families_apart() -> None:
    assert (FastGLTError.exit_code, InputError.exit_code, MachineError.exit_code) == (1, 2, 1)


@pytest.mark.parametrize(
    ("got", "message"),
    [
        ("gcm", "unknown model (got 'gcm'); did you mean 'gcn'? Known: gat, gcn"),
        ("GCN", "unknown model (got 'GCN'); did you mean 'gcn'? Known: gat, gcn"),
        ("transformer", "unknown model (got 'transformer'). Known: gat, gcn"),
        ("", "unknown model (got ''). Known: gat, gcn"),
    ],
)
def test_an_unknown_name_is_answered_with_the_known_ones(got: str, message: str) -> None:
    assert str(unknown_name("model", got, ["gcn", "gat"])) == message
