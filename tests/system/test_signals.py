import os
import signal
import threading
from types import SimpleNamespace

import pytest

from fastglt.system.signals import stop_on_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_a_wish_to_stop(number: signal.Signals) -> None:
    running, before = SimpleNamespace(stop=False), signal.getsignal(number)
    with stop_on_signals(running):
        os.kill(os.getpid(), number)
        assert running.stop
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)  # does not wait
    assert signal.getsignal(number) is before


def test_another_thread_changes_nothing() -> None:
    seen = []

    def look() -> None:
        with stop_on_signals(SimpleNamespace(stop=False)):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
