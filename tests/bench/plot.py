# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A curve as SVG and as text, without a plotting library."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 360, 70, 50, 40, 20

Points = Sequence[tuple[float, float]]


def svg(title: str, x_label: str, y_label: str, points: Points, straight: bool = True) -> str:
    """A line through the points, with ``straight`` beside the straight line from zero to the last one."""
    last_x, last_y = points[-1]
    top = max(y for _x, y in points)

    def place(x: float, y: float) -> str:
        across = LEFT + x / last_x * (WIDTH - LEFT - RIGHT)
        up = HEIGHT - BOTTOM - y / top * (HEIGHT - BOTTOM - TOP)
        return "%.1f,%.1f" % (across, up)

    marks = "".join(
        '<circle cx="%s" cy="%s" r="4"/><text x="%s" y="%s" dy="-10" text-anchor="middle">%g</text>'
        % (*place(x, y).split(","), *place(x, y).split(","), float("%.3g" % y))
        for x, y in points
    )
    ticks = "".join(
        '<text x="%s" y="%d" text-anchor="middle">%g</text>'
        % (place(x, 0).split(",")[0], HEIGHT - BOTTOM + 18, x)
        for x, _y in points[-3:]
    )
    beside = '<path d="M%s L%s" stroke="#bbb" stroke-dasharray="4 4" fill="none"/>\n' % (
        place(0, 0),
        place(last_x, last_y),
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">\n'
        '<rect width="100%%" height="100%%" fill="#fff"/>\n'
        '<text x="%d" y="22" font-size="15">%s</text>\n'
        '<text x="%d" y="%d" text-anchor="middle">%s</text>\n'
        '<text transform="translate(18,%d) rotate(-90)" text-anchor="middle">%s</text>\n'
        "%s"
        '<path d="M%d,%d V%d H%d" stroke="#333" fill="none"/>\n'
        '<polyline points="%s" stroke="#0a6" stroke-width="2" fill="none"/>\n'
        '<g fill="#0a6">%s</g>\n%s\n</svg>\n'
        % (
            WIDTH,
            HEIGHT,
            LEFT,
            escape(title),
            (LEFT + WIDTH) // 2,
            HEIGHT - 12,
            escape(x_label),
            HEIGHT // 2,
            escape(y_label),
            beside if straight else "",
            LEFT,
            TOP,
            HEIGHT - BOTTOM,
            WIDTH - RIGHT,
            " ".join(place(x, y) for x, y in points),
            marks,
            ticks,
        )
    )


def text(points: Points, unit: str, width: int = 50) -> list[str]:
    """The curve as bars: one line for each point, and what one more costs."""
    top = max(y for _x, y in points)
    return [
        "%8d  %10.4g %s  %-*s  %.4g %s each" % (x, y, unit, width, "#" * round(y / top * width), y / x, unit)
        for x, y in points
    ]
