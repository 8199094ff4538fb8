"""Take the pictures of the docs: ``python docs/shoot.py`` (needs Chromium and playwright).

They are of recorded studies, so nothing is measured. The numbers on the first screen are those of
five-minutes.md.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from lmreach.report import render
from lmreach.results import open_results

FOLDER = Path(__file__).parent
PICTURES = FOLDER / "pictures"
GOOD = FOLDER / "results" / "gemma-3-270m"
# What each number of the list in five-minutes.md stands beside.
PLACES = (
    ".answer",
    ".tile:nth-child(1)",
    ".tile:nth-child(2)",
    ".tile:nth-child(3)",
    ".tile:nth-child(4)",
    "figure",
)
NUMBER = """([places]) => places.forEach((place, index) => {
  const box = document.querySelector(place).getBoundingClientRect();
  const mark = document.createElement("div");
  mark.textContent = index + 1;
  mark.style = `position:absolute;left:${index ? box.right - 26 : box.left - 34}px;top:${box.top + scrollY + 4}px;width:24px;height:24px;`
    + "border-radius:12px;background:#a34700;color:#fff;font:600 14px/24px sans-serif;text-align:center";
  document.body.append(mark);
})"""


def main() -> None:
    """Write every picture."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page = render(open_results(GOOD), Path(folder)).as_uri()
        path = shutil.which("chromium") or shutil.which("google-chrome")
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        shot(browser, page, "first-screen.png", width=1280, height=760, numbers=True)
        shot(browser, page, "page.png", width=1280, height=800, whole=True)
        shot(browser, page, "phone-dark.png", width=390, height=844, scheme="dark")
        browser.close()


def shot(
    browser: Any,
    page: str,
    name: str,
    *,
    width: int,
    height: int,
    scheme: str = "light",
    whole: bool = False,
    numbers: bool = False,
) -> None:
    """Take one picture of a page."""
    opened = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    opened.goto(page)
    if numbers:
        opened.evaluate(NUMBER, [list(PLACES)])
    opened.screenshot(path=PICTURES / name, full_page=whole)
    opened.close()
    print(PICTURES / name)


if __name__ == "__main__":
    main()
