"""What the Lab adds to all pages: its page in the navigation, its key, its words."""

from typing import Final

# Name, label, and the names of the pages below it.
SITE_PAGES: Final = (("lab", "Lab", ("lab-experiment", "lab-run")),)
# Keys, what they open, and its name.
KEYS: Final = ((("g", "l"), "Lab", "lab"),)
TERMS: Final = (
    (
        "Lab",
        "Experiments that compare planners on generated or recorded workloads. They affect no "
        "cluster.",
    ),
    (
        "experiment",
        "A comparison of series (mostly algorithms) over the values of a parameter, each on "
        "several workloads.",
    ),
    (
        "run",
        "In the Lab: an experiment with chosen parameters. Its table has a row per value, "
        "series and seed.",
    ),
)
