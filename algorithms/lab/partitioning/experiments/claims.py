"""Claims of papers 001 (figures 12, 13, 15) and 002 (figures 4, 6 to 13), by experiment."""

from collections.abc import Mapping
from typing import Final

from algorithms.lab.claims import Claim
from algorithms.lab.claims.checks import Below, Course, Each, GapGrows, Limited

_BALANCED: Final = ("two_choices", "random_choices", "bounded_load", "shuffle")
_CG: Final = "consistent_grouping"
_HYSTERESIS: Final = "consistent_hysteresis"


def _queues(figure: str, others: tuple[str, ...], entry: str) -> Claim:
    text = "Queues of key grouping grow with time, those of consistent grouping stay shorter."
    checks = (Course("queue", ("key",), dip=0.1), Below("queue", _CG, others, above=50.0))
    return Claim(figure, text, Each(checks), entry)


# A shorter stream ends before loads are balanced.
SCALE: Final[Mapping[str, float]] = {"messages": 100_000, "duration_s": 200, "distinct": 10_000}
CLAIMS: Final[Mapping[str, tuple[Claim, ...]]] = {
    "fig4": (
        Claim("figure 4", "Key and partial key grouping lose balance as the skew grows.",
              Course("imbalance", ("key", "partial_key")), "4 key and partial key grouping lose"),
        Claim("figure 4", "The other groupings stay balanced: the imbalance is at most 0.1 % of "
              "all messages.", Limited("imbalance", _BALANCED, most=0.001),
              "4 the other groupings are balanced"),
        Claim("figure 4", "Balance costs memory: shuffle grouping needs more than partial key "
              "grouping.", Below("memory_ratio", "partial_key", ("shuffle",)),
              "4 balance costs memory"),
    ),
    "fig6": (
        Claim("figure 6", "A larger slack costs balance.",
              Course("total_imbalance", (_CG,), dip=0.2), "6 eps trades imbalance for memory"),
        Claim("figure 6", "A larger slack saves memory.",
              Course("memory_ratio", (_CG,), rises=False, dip=0.1),
              "6 eps trades imbalance for memory"),
    ),
    "fig7": (
        Claim("figure 7", "Random choices need no more memory than partial key grouping.",
              Below("memory_ratio", "random_choices", ("partial_key",)),
              "7 random choices: memory as low"),
        Claim("figure 7", "The imbalance of key and partial key grouping grows with the number of "
              "workers.", Course("imbalance", ("key", "partial_key")),
              "7 imbalance of key and partial key grouping grows"),
    ),
    "fig8": (
        Claim("figure 8", "Partial key grouping is balanced on 10 workers.",
              Limited("total_imbalance", ("partial_key",), most=0.01, above=10, below=10),
              "8 partial key grouping is balanced"),
        Claim("figure 8", "Consistent grouping keeps the imbalance below 5 % of utilisation.",
              Limited("total_imbalance", (_CG,), most=0.05), "8 CG: bounded imbalance"),
        Claim("figure 8", "Consistent grouping needs less memory than bounded loads.",
              Below("memory", _CG, ("bounded_load",)), "8 CG has less memory"),
    ),
    "fig9": (_queues("figure 9", ("key",), "9 equal workers"),),
    "fig10": (
        _queues("figure 10", ("key", "shuffle"), "10 unequal workers"),
        Claim("figure 10", "Queues of shuffle grouping grow with time.",
              Course("queue", ("shuffle",), dip=0.1), "10 unequal workers"),
    ),
    "fig11": (
        Claim("figure 11", "More sources do not change the imbalance: it stays below 5 %.",
              Limited("total_imbalance", (_CG,), most=0.05), "11 more sources and workers"),
    ),
    "fig12": (
        Claim("figure 12", "Five virtual workers per worker are not enough: latencies differ more "
              "than with 100.", Course("latency", (_CG,), rises=False, dip=1.0),
              "12 5 virtual workers per worker"),
    ),
    "fig13": (
        Claim("figure 13", "Consistent grouping adapts to changed capacities: its queues stay "
              "shorter than those of key grouping.", Below("queue", _CG, ("key",), above=50.0),
              "13 CG adapts to changed capacities"),
        Claim("Weir", "With hysteresis, queues are shorter at the end.",
              Below("queue", _HYSTERESIS, (_CG,), slack=0.1, above=100.0)),
    ),
    "slots": (
        Claim("Weir", "Hysteresis needs fewer moves of virtual workers for every time slot.",
              Below("moves", _HYSTERESIS, (_CG,))),
    ),
    "panes": (
        Claim("paper 001, figure 12", "After the warm-up, rate-aware panes keep the load balancing "
              "ratio below 7 %.", Limited("ratio", ("rate_aware",), most=7.0, above=60.0),
              "12 rate-aware panes"),
        Claim("paper 001, figure 12", "Plain panes have a ratio several times as large.",
              Below("ratio", "rate_aware", ("panes",), factor=3.0, above=60.0),
              "12 rate-aware panes"),
        Claim("paper 001, figure 12", "Rate-aware panes need a longer warm-up: in the first 20 s "
              "plain panes are better balanced.",
              Below("ratio", "panes", ("rate_aware",), below=20.0),
              "12 rate-aware needs a longer warm-up"),
    ),
    "relocations": (
        Claim("paper 001, figure 13(a)", "Basic hashing relocates almost all keys, at least 75 %.",
              Limited("relocated", ("key",), least=75.0), "13(a) basic hashing"),
        Claim("paper 001, figure 13(a)", "Frequency-aware hashing relocates far fewer, and the gap "
              "grows with the number of workers.", GapGrows("relocated", "frequency_aware", "key"),
              "13(a) basic hashing"),
        Claim("paper 001, figure 13(b)", "Fewer partial results have to be merged.",
              Below("results", "frequency_aware", ("key",)), "13(b) fewer partial results"),
    ),
    "frequent_keys": (
        Claim("paper 001, figure 15", "Dividing the five most frequent keys keeps the ratio below "
              "50 % for every skew.",
              Limited("ratio", ("zipf_0.5", "zipf_1", "zipf_1.5", "zipf_2"), most=50.0,
                      above=5.0, below=5.0), "15 K = 5 is below 50 %"),
        Claim("paper 001, figure 15", "The ratio falls with the number of divided keys.",
              Course("ratio", ("zipf_1", "zipf_1.5", "zipf_2"), rises=False, dip=0.1),
              "15 more than 100 to 200 keys"),
        Claim("paper 001, figure 15", "With 100 divided keys, the ratio is at most 20 %.",
              Limited("ratio", ("zipf_1", "zipf_1.5", "zipf_2"), most=20.0, above=100.0,
                      below=100.0), "15 K = 100 comes near"),
    ),
}  # fmt: skip
