"""Draws what the committed results of the engine's benchmarks say, for docs/performance.md.

Each figure takes one file of benchmarks/results and is left out where that is missing. Nothing is measured.

Run: python -m benchmarks.plots
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from benchmarks.recording import ROOT

RESULTS, IMAGES = ROOT / "benchmarks" / "results", ROOT / "docs" / "images"
TICKS, SEGMENTS = (1, 2, 5, 10, 20, 50), (1, 10, 100)
OURS, OTHERS, BAR = "#00796b", "#b0bec5", "#c62828"


def scale(axes: Axes, record: dict[str, Any]) -> None:
    """Milliseconds of a three-way search by the number of documents."""
    documents = [int(count) for count in record["documents"]]
    for name, label, style in (("median_ms", "median", "o-"), ("p99_ms", "99th percentile", "s--")):
        values = [each[name] for each in record["documents"].values()]
        axes.plot(documents, values, style, color=OURS, label=label)
        axes.axhline(record["bars"][name], color=BAR, linewidth=0.8, linestyle=style[1:])
    axes.set(xscale="log", xlabel="documents", ylabel="ms a search", ylim=(0, None))
    axes.set_title("Three-way search, without encoding the query (red: the bars)")
    axes.legend()


def late(axes: Axes, record: dict[str, Any]) -> None:
    """Milliseconds of late interaction by codec and dimension."""
    dimensions = list(record["results"])
    codecs = list(record["results"][dimensions[0]]["codecs"])
    for place, dimension in enumerate(dimensions):
        each = record["results"][dimension]
        values = [each["codecs"][codec]["median_ms"] for codec in codecs]
        spots = [number + 0.4 * place - 0.2 for number in range(len(codecs))]
        bars = axes.bar(spots, values, 0.4, color=(OURS, OTHERS)[place], label=f"{dimension} values")
        axes.bar_label(bars, fmt="%.1f", fontsize=8)
        axes.axhline(each["bar_ms"], color=BAR, linewidth=0.8, linestyle=("-", "--")[place])
    axes.set(yscale="log", ylabel="ms", xticks=range(len(codecs)), xticklabels=codecs)
    axes.set_yticks(TICKS, list(map(str, TICKS)))
    axes.minorticks_off()
    axes.set_title("32 query tokens × 400 documents × 200 tokens (red: the bars)")
    axes.legend()


def token_codecs(axes: Axes, record: dict[str, Any]) -> None:
    """What codecs lose on average, by bytes a token."""
    first = next(iter(record["sets"].values()))
    for codec, changes in record["mean_changes"].items():
        size = first[codec]["bytes_per_token"]
        for side, marker, color in (("colbert", "o", OTHERS), ("sum", "s", OURS)):
            axes.plot(size, 100 * changes[side], marker, color=color)
        axes.annotate(
            codec, (size, 100 * changes["sum"]), textcoords="offset points", xytext=(5, 4), fontsize=8
        )
    axes.plot([], [], "s", color=OURS, label="sum")
    axes.plot([], [], "o", color=OTHERS, label="ColBERT alone")
    axes.axhline(0, color="black", linewidth=0.5)
    axes.set(xscale="log", xlabel="bytes a token of 128 values", ylabel="change of nDCG@10, %")
    axes.set_title("Token codecs beside float32, mean over six collections")
    axes.legend()


def filters(axes: Axes, record: dict[str, Any]) -> None:
    """Times of filtered searches beside the unfiltered one, by share of documents that pass."""
    shares = sorted(
        {each["share"] for each in record["filters"]}, key=lambda share: -float(share.rstrip("%"))
    )
    for marker, kind in zip(
        "osD^v*", dict.fromkeys(each["filter"] for each in record["filters"]), strict=False
    ):
        of_kind = [each for each in record["filters"] if each["filter"] == kind]
        spots = [shares.index(each["share"]) for each in of_kind]
        axes.plot(spots, [each["ratio"] for each in of_kind], marker, color=OURS, alpha=0.6, label=kind)
    axes.axhline(1.5, color=BAR, linewidth=0.8)
    axes.set(xticks=range(len(shares)), xticklabels=shares, xlabel="documents that pass")
    axes.set(ylabel="times the unfiltered search", ylim=(0, None))
    axes.set_title("Filters over 100,000 documents (red: the bar)")
    axes.legend()


def segments(axes: Axes, record: dict[str, Any]) -> None:
    """Times over 1, 10 and 100 segments beside one."""
    for kind, style in (("flat", "o-"), ("hnsw", "s--")):
        for side, color in (("three-way", OURS), ("sparse", OTHERS)):
            times = record["searches"][kind][side]["times_one_segment"]
            axes.plot([int(count) for count in times], list(times.values()), style, color=color)
            axes.plot([], [], style, color=color, label=f"{side}, {kind}")
    axes.axhline(record["bars"]["times_one_segment"], color=BAR, linewidth=0.8)
    axes.set(xscale="log", xlabel="segments", ylabel="times one segment", ylim=(0, None))
    axes.set_xticks(SEGMENTS, list(map(str, SEGMENTS)))
    axes.minorticks_off()
    axes.set_title("The same 100,000 documents in many segments (red: the bar)")
    axes.legend()


def search_peers(axes: Axes, record: dict[str, Any]) -> None:
    """Queries a second of each system and kind of search."""
    names, values, colors = [], [], []
    for system, each in record["systems"].items():
        for kind, figures in each.items():
            if isinstance(figures, dict):
                names.append(f"{system}\n{kind}, recall@10 {figures['recall@10']:.3f}")
                values.append(figures["queries_a_second"])
                colors.append(OURS if system == "Tercet" else OTHERS)
    bars = axes.barh(names, values, color=colors)
    axes.bar_label(bars, fmt="{:.3g}", fontsize=8)
    axes.set(xscale="log", xlabel="queries a second")
    axes.tick_params(axis="y", labelsize=7)
    axes.invert_yaxis()
    axes.set_title(f"{record['documents']:,} documents, {record['clients']} clients")


FIGURES: dict[str, Callable[[Axes, dict[str, Any]], None]] = {
    "scale": scale,
    "late": late,
    "token_codecs": token_codecs,
    "filters": filters,
    "segments": segments,
    "search_peers": search_peers,
}


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter).parse_args()
    mpl.rcParams["svg.hashsalt"] = "tercet"  # equal results, equal files
    for name, draw in FIGURES.items():
        result = RESULTS / f"{name}.json"
        if not result.exists():
            print(f"{name}: no result yet")
            continue
        figure = Figure(figsize=(7, 3.6), layout="constrained")
        record = json.loads(result.read_text(encoding="utf-8"))
        draw(figure.add_subplot(), record)
        figure.text(1, 0, record["date"], ha="right", va="bottom", fontsize=6, color="gray")
        path = IMAGES / f"performance-{name.replace('_', '-')}.svg"
        FigureCanvasSVG(figure).print_svg(path, metadata={"Date": None})  # type: ignore[no-untyped-call]
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
