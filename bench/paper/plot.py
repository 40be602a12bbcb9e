"""Line charts as SVG, without a library."""

COLOURS = ["#1b6ca8", "#c8553d", "#588157", "#8d6a9f", "#b08900"]
WIDTH, HEIGHT, LEFT, TOP, GAP = 250, 190, 46, 34, 30


def svg(title, panels, legend, x_label, y_label):
    """panels: [(name, x labels, {series: [y or None]})], drawn side by side; the legend names the series in order."""
    width = len(panels) * (WIDTH + LEFT + GAP)
    height = HEIGHT + TOP + 62
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="8" y="16" font-size="13">{title}</text>']
    for number, (name, labels, series) in enumerate(panels):
        out += panel(number * (WIDTH + LEFT + GAP) + LEFT, name, labels, series, legend, x_label, y_label)
    for i, name in enumerate(legend):
        x = LEFT + i * 150
        out.append(f'<line x1="{x}" x2="{x + 20}" y1="{height - 10}" y2="{height - 10}" stroke="{COLOURS[i]}" stroke-width="2"/>')
        out.append(f'<text x="{x + 25}" y="{height - 6}">{name}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def panel(left, name, labels, series, legend, x_label, y_label):
    most = max([y for ys in series.values() for y in ys if y is not None] or [1]) * 1.08 or 1
    bottom = TOP + HEIGHT

    def place(i, y):
        return left + (i + 0.5) * WIDTH / len(labels), bottom - y / most * HEIGHT

    out = [f'<text x="{left}" y="{TOP - 5}">{name}</text>',
           f'<rect x="{left}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>',
           f'<text x="{left + WIDTH / 2}" y="{bottom + 28}" text-anchor="middle">{x_label}</text>',
           f'<text transform="translate({left - 34},{TOP + HEIGHT / 2}) rotate(-90)" text-anchor="middle">{y_label}</text>']
    for i in range(5):
        y = bottom - i * HEIGHT / 4 / 1.08
        out.append(f'<text x="{left - 4}" y="{y + 4:.1f}" text-anchor="end">{most / 1.08 * i / 4:.3g}</text>')
    for i, label in enumerate(labels):
        out.append(f'<text x="{place(i, 0)[0]:.1f}" y="{bottom + 14}" text-anchor="middle">{label}</text>')
    for key, ys in series.items():
        colour = COLOURS[legend.index(key)]
        points = [place(i, y) for i, y in enumerate(ys) if y is not None]
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="'
                   + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>')
        if len(points) < 20:
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in points]
    return out
