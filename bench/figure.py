# SPDX-License-Identifier: BSD-3-Clause
"""What the drawn figures share: their size, and the two axes."""

WIDTH, HEIGHT, MARGIN = 640, 400, 60


def axes():
    """The first parts of an SVG; what is drawn and "</svg>" follow."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<path d="M{MARGIN} {MARGIN}V{HEIGHT - MARGIN}H{WIDTH - MARGIN}" fill="none" '
        'stroke="black"/>',
    ]
