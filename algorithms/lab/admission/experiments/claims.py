"""Claims of paper 001 about its figures 10, 11 and 14, by experiment."""

from collections.abc import Mapping
from typing import Final

from algorithms.lab.claims import Claim
from algorithms.lab.claims.checks import Below, Each, Limited

_OTHERS: Final = ("ari", "ard", "drf", "drf_m")

# A shorter time has too few optimisation periods.
SCALE: Final[Mapping[str, float]] = {"duration_s": 600, "streams": 40}
CLAIMS: Final[Mapping[str, tuple[Claim, ...]]] = {
    "fig10": (
        Claim("figure 10", "PAR redirects more streams and lets clients buffer more records than "
              "any other strategy.",
              Each(tuple(Below(measure, name, ("par",))
                         for measure in ("redirections", "buffered") for name in _OTHERS)),
              "10 PAR redirects most streams"),
        Claim("figure 10", "ARD redirects no more streams than ARI.",
              Below("redirections", "ard", ("ari",)), "10 ARI slightly worse than ARD"),
        Claim("figure 10", "DRF lets clients buffer less than ARD.",
              Below("buffered", "drf", ("ard",)), "10 DRF much better than ARD"),
        Claim("figure 10", "DRF-M redirects no more streams than DRF.",
              Below("redirections", "drf_m", ("drf",)), "10 DRF-M better than DRF"),
        Claim("figure 10(c)", "DRF and DRF-M delay records no more than ARI.",
              Each((Below("delay_s", "drf", ("ari",)), Below("delay_s", "drf_m", ("ari",)))),
              "10(c) delays of DRF"),
    ),
    "fig11": (
        Claim("figure 11", "PAR uses at most 15 % more split nodes than the optimum.",
              Limited("above_optimum", ("par",), most=15.0), "11 PAR close to the optimum"),
        Claim("figure 11", "DRF uses about 15 % more split nodes than the optimum: at most 20 %.",
              Limited("above_optimum", ("drf",), most=20.0), "11 DRF about 15 %"),
        Claim("section 6", "DRF-M uses about 15 % more split nodes than the optimum: at most 20 %.",
              Limited("above_optimum", ("drf_m",), most=20.0), "summary: DRF-M about 15 %"),
        Claim("Weir", "Consolidation lowers the number of split nodes of DRF-M.",
              Below("nodes", "drf_m_consolidated", ("drf_m",))),
    ),
    "fig14": (
        Claim("figure 14", "DRF-M keeps the latency below 5 s.",
              Limited("latency_s", ("drf_m",), most=5.0), "14 DRF-M keeps the latency"),
        Claim("figure 14", "DRF-M has a latency no higher than that of ARD.",
              Below("latency_s", "drf_m", ("ard",), slack=0.01), "14 DRF-M lower latency than ARD"),
        Claim("figure 14", "A static cluster exceeds 5 s at the peak of the load.",
              Limited("latency_s", ("static",), least=5.0, above=1000.0, below=1200.0),
              "14 a static cluster needs more nodes"),
    ),
}  # fmt: skip
