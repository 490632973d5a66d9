"""Words for results, the same in every command; scores as per cent and points here, fractions everywhere else."""

OUTCOMES = {  # of a verdict, by the names they have in JSON
    "winning": "winning",
    "non-inferior": "non-inferior",
    "undecided": "undecided",
    "inferior": "worse",
}

OPPONENTS = {  # of a ticket, by the names of their phases
    "dense": "dense",
    "dense_distilled": "distilled dense",
    "dense_same_lr": "same-lr dense",
}


def phase_title(phase: str) -> str:
    """A phase, or the score of one, as people call it; files and JSON have kept the older word.

    >>> phase_title("isolated"), phase_title("dense_distilled")
    ('retrained', 'dense distilled')
    """
    return phase.replace("isolated", "retrained").replace("_", " ")


def percent(value: float | None) -> str:
    """A score as per cent, without the sign.

    >>> percent(0.815), percent(None)
    ('81.50', '–')
    """
    return "–" if value is None else f"{100 * value:.2f}"


def mean_and_deviation(mean: float | None, deviation: float | None) -> str:
    """A mean score with its standard deviation, if it has one, both as per cent.

    >>> mean_and_deviation(0.815, 0.002), mean_and_deviation(0.815, None)
    ('81.50 ± 0.20', '81.50')
    """
    return percent(mean) if deviation is None else f"{percent(mean)} ± {percent(deviation)}"


def points(value: float) -> str:
    """A distance between scores, in words.

    >>> points(0.01), points(0.005)
    ('1 point', '0.5 points')
    """
    text = f"{100 * value:.4g}"
    return f"{text} point" if text == "1" else f"{text} points"


def counted(number: int, what: str) -> str:
    """A number of things, in words.

    >>> counted(1, "run"), counted(2356, "run")
    ('1 run', '2,356 runs')
    """
    return f"{number:,} {what}" + "s" * (number != 1)


def signed(value: float) -> str:
    """A difference of scores in points, with its sign.

    >>> signed(-0.0034), signed(0.0), signed(-0.00001)
    ('−0.34', '+0.00', '−0.00')
    """
    return f"{100 * value:+.2f}".replace("-", "−")


def against_dense(difference: float, dense: str = "dense") -> str:
    """How a ticket's score lies to dense, in the words of the papers' plain rule.

    >>> against_dense(0.0034), against_dense(-0.0108)
    ('at least dense (+0.34 points)', 'below dense (−1.08 points)')
    """
    return f"{'at least' if difference >= 0 else 'below'} {dense} ({signed(difference)} points)"


def duration(seconds: float) -> str:
    """About how long something takes.

    >>> duration(12.3), duration(130), duration(9000)
    ('12 s', '2 min', '2.5 h')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
