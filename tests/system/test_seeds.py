import numpy as np
import torch

from fastglt.system.seeds import derive, own_random_state, permutation, set_random_state, uniform


def test_derived_seeds_are_equal_for_equal_arguments_only() -> None:
    arguments = [(seed, purpose, part) for seed in range(20) for purpose in ("init", "epoch") for part in range(20)]
    seeds = {derive(*argument) for argument in arguments}
    assert len(seeds) == len(arguments)
    assert derive(3, "init", 4) == derive(3, "init", 4)


def test_derived_seeds_are_63_bits() -> None:
    seeds = [derive(seed, "x") for seed in range(200)]
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert max(seeds) > 2**62


def test_a_derived_seed_never_changes() -> None:
    assert derive(0, "init", "layer1") == 4938385399552897858  # half of sha256("0/init/layer1")'s first eight bytes


def test_uniform_numbers_fill_their_range_and_repeat() -> None:
    numbers = uniform((100, 200), 0.5, seed=1)
    assert numbers.dtype == torch.float32
    assert numbers.shape == (100, 200)
    assert -0.5 <= float(numbers.min()) < -0.49
    assert 0.49 < float(numbers.max()) < 0.5
    assert abs(float(numbers.mean())) < 0.01
    assert torch.equal(numbers, uniform((100, 200), 0.5, seed=1))
    assert not torch.equal(numbers, uniform((100, 200), 0.5, seed=2))


def test_uniform_numbers_never_change() -> None:
    unit = np.random.Generator(np.random.PCG64(0)).random(2, dtype=np.float32)
    assert uniform((2,), 1.0, seed=0).tolist() == [float(u * 2 - 1) for u in unit]


def test_a_permutation_holds_everything_once() -> None:
    shuffled = permutation(50, seed=3)
    assert sorted(shuffled.tolist()) == list(range(50))
    assert shuffled.tolist() != list(range(50))
    assert torch.equal(shuffled, permutation(50, seed=3))
    assert not torch.equal(shuffled, permutation(50, seed=4))


def test_numpys_and_torchs_own_generators_are_left_alone() -> None:
    torch_state, numpy_state = torch.get_rng_state(), str(np.random.get_state())  # noqa: NPY002
    permutation(9, seed=0)
    uniform((9,), 1.0, seed=0)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert str(np.random.get_state()) == numpy_state  # noqa: NPY002


def test_the_random_state_is_that_of_manual_seed() -> None:
    cpu, seed = torch.device("cpu"), derive(3, "epoch", 5)
    with own_random_state(cpu):
        torch.manual_seed(seed)
        expected = torch.randint(2**62, (3,))
        set_random_state(seed, cpu)
        assert torch.equal(torch.randint(2**62, (3,)), expected)
        assert torch.initial_seed() == seed
