(() => {
  "use strict";
  const make = (tag, attributes, text) => {
    const node = document.createElement(tag);
    Object.entries(attributes || {}).forEach(([name, value]) => node.setAttribute(name, value));
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const save = (name, parts, type) => {
    const url = URL.createObjectURL(new Blob(parts, { type }));
    const link = make("a", { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };

  // The results stand in the page once; the link hands them out.
  const results = document.getElementById("results-json");
  const download = document.getElementById("download");
  if (results && download) download.addEventListener("click", () => save(download.dataset.name || "results.json", [results.textContent], "application/json"));

  // Tables: sort by a column, keep the rows with a word, download as CSV.
  const value = (cell) => {
    const text = cell ? (cell.dataset.value || cell.firstChild && cell.firstChild.textContent || "").trim() : "";
    const digits = text.replace(/,/g, "").match(/^[-−]?\d+(\.\d+)?/);
    return digits ? Number(digits[0].replace("−", "-")) : text;
  };
  const compare = (a, b) => typeof a === typeof b ? (typeof a === "number" ? a - b : a.localeCompare(b)) : typeof a === "number" ? -1 : 1;
  const csv = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => {
    const text = cell.innerText.replace(/\s+/g, " ").trim();
    // A leading = + - @ would be run as a formula by a spreadsheet.
    const safe = /^[=+@]|^-\D/.test(text) ? "'" + text : text;
    return '"' + safe.replace(/"/g, '""') + '"';
  }).join(",")).join("\r\n");
  document.querySelectorAll(".scroll.wide > table").forEach((table) => {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const tools = make("div", { class: "tools" });
    if (rows.length > 6) {
      const filter = make("input", { type: "search", placeholder: "filter rows", "aria-label": "Filter rows of: " + table.caption.textContent });
      filter.addEventListener("input", () => rows.forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(filter.value.toLowerCase()); }));
      tools.append(filter);
    }
    const button = make("button", { type: "button" }, "CSV");
    button.setAttribute("aria-label", "Download as CSV: " + table.caption.textContent);
    button.addEventListener("click", () => save(table.id.replace(/-table$/, "") + ".csv", ["\ufeff" + csv(table)], "text/csv"));
    tools.append(button);
    table.parentElement.after(tools);
    if (rows.length < 2) return;
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      // No button element: Chromium does not repeat a head with one on each printed page.
      const sorter = make("span", { role: "button", tabindex: "0", class: "sort" });
      sorter.append(...head.childNodes);
      head.append(sorter);
      head.setAttribute("aria-sort", "none");
      sorter.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        sorter.click();
      });
      sorter.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        [...table.tHead.rows[0].cells].forEach((cell) => cell.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        [...body.rows].sort((a, b) => (up ? 1 : -1) * compare(value(a.cells[column]), value(b.cells[column]))).forEach((row) => body.append(row));
      });
    });
  });

  // Figures: what a mark says, and the picture as SVG or PNG.
  const tip = make("div", { class: "tip", hidden: "" });
  document.body.append(tip);
  const say = (text, x, y) => {
    tip.textContent = text;
    tip.hidden = !text;
    if (!text) return;
    const width = document.documentElement.clientWidth;
    tip.style.left = Math.max(8, Math.min(x + 12, width - tip.offsetWidth - 8)) + scrollX + "px";
    tip.style.top = Math.max(0, y - tip.offsetHeight - 10) + scrollY + "px";
  };
  document.querySelectorAll("figure").forEach((figure) => {
    figure.addEventListener("pointermove", (event) => {
      const mark = event.target.closest && event.target.closest("[aria-roledescription][aria-label]");
      say(mark ? mark.getAttribute("aria-label") : "", event.clientX, event.clientY);
    });
    figure.addEventListener("pointerleave", () => say(""));
    const picture = () => [...figure.querySelectorAll("svg")].find((one) => one.getClientRects().length);
    if (!figure.querySelector("svg")) return;
    const name = figure.id.replace(/^figure-/, "");
    const source = () => {
      const copy = picture().cloneNode(true);
      copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
      const shown = picture().querySelectorAll("*");
      // Colours of the dark page are rules of its style sheet; the file carries them itself.
      [...copy.querySelectorAll("*")].forEach((node, index) => ["fill", "stroke"].forEach((paint) => {
        if (node.hasAttribute(paint)) node.setAttribute(paint, getComputedStyle(shown[index])[paint]);
      }));
      return new XMLSerializer().serializeToString(copy);
    };
    const tools = make("div", { class: "tools" });
    const svg = make("button", { type: "button", "aria-label": "Download figure as SVG: " + name }, "SVG");
    svg.addEventListener("click", () => save(name + ".svg", [source()], "image/svg+xml"));
    const png = make("button", { type: "button", "aria-label": "Download figure as PNG: " + name }, "PNG");
    png.addEventListener("click", () => {
      const box = picture().getBoundingClientRect();
      const image = new Image();
      image.onload = () => {
        const canvas = make("canvas", { width: 2 * box.width, height: 2 * box.height });
        const pen = canvas.getContext("2d");
        pen.fillStyle = getComputedStyle(document.body).backgroundColor;
        pen.fillRect(0, 0, canvas.width, canvas.height);
        pen.drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => save(name + ".png", [blob], "image/png"));
      };
      image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(source());
    });
    tools.append(svg, png);
    figure.append(tools);
  });

  // The calculator: C = c d / ln V, and what follows from it.
  const form = document.getElementById("calculator-form");
  if (form) {
    const constants = JSON.parse(document.getElementById("format-constants").textContent);
    const field = (name) => form.elements.namedItem(name);
    const shown = (number) => Number.isFinite(number) ? Number(number.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 6 }) : "not known";
    const answer = (id, text) => { document.getElementById("calculator-" + id).textContent = text; };
    const reckon = () => {
      const [width, vocab, vectors, length] = ["width", "vocab", "vectors", "length"].map((name) => Number(field(name).value));
      const bad = [width, vocab, vectors, length].some((number) => !(Number.isInteger(number) && number >= 1)) || vocab < 2;
      const entry = constants.find((one) => one.name === field("format").value);
      const nats = entry[field("packing").value];
      const logV = Math.log(vocab);
      const limit = width * nats / logV;
      const left = Math.min(0, vectors * width * nats - length * logV) / Math.LN10;
      answer("limit", bad ? "needs whole numbers of at least 1" : shown(limit) + " tokens per vector");
      answer("possible", bad ? "" : Math.floor(vectors * limit).toLocaleString("en-US") + " tokens");
      answer("share", bad ? "" : left === 0 ? "all of them: not excluded" : "at most 10^" + shown(left) + " of them");
      answer("vectors", bad ? "" : Math.ceil(length * logV / (width * nats)).toLocaleString("en-US"));
      answer("width", bad ? "" : Math.ceil(length * logV / (vectors * nats)).toLocaleString("en-US"));
    };
    form.addEventListener("input", reckon);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    reckon();
  }

  // On paper: what is open on the screen, and what a reader of the paper cannot do without.
  addEventListener("beforeprint", () => document.querySelectorAll("details.printed").forEach((one) => { one.dataset.was = one.open ? "open" : ""; one.open = true; }));
  addEventListener("afterprint", () => document.querySelectorAll("details.printed").forEach((one) => { one.open = one.dataset.was === "open"; }));

  // A link into what is folded opens it.
  const reveal = () => {
    const aim = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let one = aim && aim.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
    if (aim) aim.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
})();
