"""The oldest transfer makes room, by number and by bytes, and nobody else notices."""

import asyncio

import pytest

from fastglt.serve.transit import CrowdedError, Transit


async def take(transit: Transit, size: int, name: str, log: list[str], *, seconds: float = 20.0) -> None:
    """Bytes come, then nothing until somebody says so."""
    try:
        async with transit.transfer(seconds) as transfer:
            transfer.grow(size)
            await asyncio.sleep(30)
    except CrowdedError:
        log.append(f"{name} crowded")
    except TimeoutError:
        log.append(f"{name} late")


async def start_all(transit: Transit, *sizes: int) -> list[str]:
    """One after the other; who was given up."""
    log: list[str] = []
    tasks = []
    for number, size in enumerate(sizes):
        tasks.append(asyncio.create_task(take(transit, size, str(number), log)))
        for _ in range(5):
            await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return log


def test_one_too_many_ends_the_oldest() -> None:
    assert asyncio.run(start_all(Transit(most=2, room=100), 1, 1, 1, 1)) == ["0 crowded", "1 crowded"]


def test_bytes_too_many_end_as_many_as_needed() -> None:
    assert asyncio.run(start_all(Transit(most=9, room=100), 30, 30, 30, 60)) == ["0 crowded", "1 crowded"]


def test_what_has_ended_takes_no_room() -> None:
    async def run() -> list[str]:
        transit = Transit(most=1, room=100)
        for _ in range(5):
            async with transit.transfer(20) as transfer:
                transfer.grow(100)
        return await start_all(transit, 100)

    assert asyncio.run(run()) == []


def test_a_transfer_that_makes_room_for_itself_is_told_at_once() -> None:
    async def run() -> None:
        async with Transit(most=9, room=100).transfer(20) as transfer:
            transfer.grow(101)

    with pytest.raises(CrowdedError):
        asyncio.run(run())


def test_time_is_over() -> None:
    log: list[str] = []
    asyncio.run(take(Transit(most=1, room=1), 0, "it", log, seconds=0.01))
    assert log == ["it late"]
