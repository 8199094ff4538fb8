"""Pages and pictures from results.json; reads results only, recomputes nothing."""

from lmreach.report.figures import save_figures as save_figures
from lmreach.report.html import page as page
from lmreach.report.html import render as render
