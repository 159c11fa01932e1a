"""Colours as people see them: colour-vision deficiency, difference (CIEDE2000), contrast (WCAG).

Sources: Machado, Oliveira and Fernandes, IEEE TVCG 15(6), 2009 (matrices of severity 1, on linear
RGB); Sharma, Wu and Dalal, Color Research and Application 30(1), 2005 (CIEDE2000).
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

PROTANOPIA: Final = np.array(
    [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ]
)
DEUTERANOPIA: Final = np.array(
    [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]
)
_XYZ: Final = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
_WHITE: Final = np.array([0.95047, 1.0, 1.08883])


def linear_rgb(colour: str) -> Vector:
    """Return the linear sRGB values of #rrggbb, from 0 to 1."""
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def seen(colour: str, deficiency: Vector | None) -> Vector:
    """Return the CIELAB values of a colour as a person with a deficiency sees it; None: without."""
    rgb = linear_rgb(colour)
    if deficiency is not None:
        rgb = np.clip(deficiency @ rgb, 0.0, 1.0)
    ratio = (_XYZ @ rgb) / _WHITE
    f = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours by WCAG, from 1 to 21."""
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    return float(np.array([0.2126, 0.7152, 0.0722]) @ linear_rgb(colour))


def delta_e(first: Vector, second: Vector) -> float:
    """Return the CIEDE2000 difference of two CIELAB colours; 1 is just noticeable."""
    mean_chroma = (math.hypot(*first[1:]) + math.hypot(*second[1:])) / 2
    g = 0.5 * (1 - math.sqrt(mean_chroma**7 / (mean_chroma**7 + 25**7)))
    (l1, c1, h1), (l2, c2, h2) = (_lch(colour, g) for colour in (first, second))
    gap = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    hue = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(gap / 2))
    mean_l, mean_c = (l1 + l2) / 2, (c1 + c2) / 2
    mean_h = h1 + h2 if c1 * c2 == 0 else (h1 + gap / 2) % 360
    t = 1 + sum(
        factor * math.cos(math.radians(times * mean_h + shift))
        for factor, times, shift in ((-0.17, 1, -30), (0.24, 2, 0), (0.32, 3, 6), (-0.20, 4, -63))
    )
    s_l = 1 + 0.015 * (mean_l - 50) ** 2 / math.sqrt(20 + (mean_l - 50) ** 2)
    s_c, s_h = 1 + 0.045 * mean_c, 1 + 0.015 * mean_c * t
    turn = 60 * math.exp(-(((mean_h - 275) / 25) ** 2))
    r_t = -2 * math.sqrt(mean_c**7 / (mean_c**7 + 25**7)) * math.sin(math.radians(turn))
    lightness, chroma, angle = (l2 - l1) / s_l, (c2 - c1) / s_c, hue / s_h
    return math.sqrt(lightness**2 + chroma**2 + angle**2 + r_t * chroma * angle)


def _lch(colour: Vector, g: float) -> tuple[float, float, float]:
    a, b = float(colour[1]) * (1 + g), float(colour[2])
    return float(colour[0]), math.hypot(a, b), math.degrees(math.atan2(b, a)) % 360
