"""The parts of a view's result. A panel holds named numbers; renderers know panels, and no views."""

from foveal.inspection.panels.bars import Bars
from foveal.inspection.panels.colored_text import ColoredText
from foveal.inspection.panels.graph import Edge, Graph, Node
from foveal.inspection.panels.heatmap import Heatmap
from foveal.inspection.panels.heatmap_grid import HeatmapGrid
from foveal.inspection.panels.histograms import Histogram, Histograms
from foveal.inspection.panels.images import Caption, ImageRow, Images, Mark, Role, Tile, answer_role
from foveal.inspection.panels.lines import Lines, Series
from foveal.inspection.panels.named_array import Axis, NamedArray
from foveal.inspection.panels.table import Table

Panel = Heatmap | HeatmapGrid | Lines | Histograms | Bars | ColoredText | Images | Graph | Table

__all__ = [
    "Axis",
    "Bars",
    "Caption",
    "ColoredText",
    "Edge",
    "Graph",
    "Heatmap",
    "HeatmapGrid",
    "Histogram",
    "Histograms",
    "ImageRow",
    "Images",
    "Lines",
    "Mark",
    "NamedArray",
    "Node",
    "Panel",
    "Role",
    "Series",
    "Table",
    "Tile",
    "answer_role",
]
