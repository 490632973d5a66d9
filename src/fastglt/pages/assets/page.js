"use strict";
(() => {
  const all = (query, inside = document) => [...inside.querySelectorAll(query)];

  // The theme: as the system says, or as chosen here.
  const theme = document.getElementById("theme");
  const themes = ["", "light", "dark"];
  const names = { "": "as the system", light: "light", dark: "dark" };
  theme.addEventListener("click", () => {
    const now = document.documentElement.dataset.theme || "";
    const next = themes[(themes.indexOf(now) + 1) % themes.length];
    document.documentElement.dataset.theme = next;
    theme.textContent = "Theme: " + names[next];
  });

  // Files made here.
  const save = (name, text, type) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const harmless = (text) => (/^[=+\-@\t\r]/.test(text) ? "'" + text : text);
  const quoted = (text) => (/[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
  const tableCsv = (table) =>
    all("tr", table)
      .map((row) => [...row.cells].map((cell) => cell.dataset.v ?? harmless(cell.textContent.trim())).map(quoted).join(","))
      .join("\n") + "\n";
  const seen = (figure) => all("svg", figure).find((svg) => svg.getClientRects().length) || figure.querySelector("svg");
  const plainSvg = (figure) => {
    const copy = seen(figure).cloneNode(true);
    copy.removeAttribute("tabindex");
    return new XMLSerializer().serializeToString(copy).replace(/var\(--c\d+,(#[0-9a-f]{6})\)/g, "$1");
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-save]");
    if (!button) return;
    const figure = button.closest("figure");
    const kind = button.dataset.save;
    if (kind === "svg") save(figure.id + ".svg", plainSvg(figure), "image/svg+xml");
    if (kind === "csv") save(figure.id + ".csv", figure.querySelector("template").content.textContent, "text/csv");
    if (kind === "table") {
      const box = button.closest(".table");
      save(box.dataset.name + ".csv", tableCsv(box.querySelector("table")), "text/csv");
    }
  });

  // Tables: sorted by a heading, narrowed by a word.
  const compare = (a, b) => {
    const [x, y] = [a, b].map((cell) => (cell.dataset.v === undefined ? null : Number(cell.dataset.v)));
    if (x !== null && y !== null) return x - y;
    if (x !== null || y !== null) return x === null ? 1 : -1;
    return a.textContent.localeCompare(b.textContent, "en", { numeric: true });
  };
  for (const button of all("button[data-sort]")) {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = head.closest("table").tBodies[0];
      const sorted = [...body.rows].sort((a, b) => compare(a.cells[head.cellIndex], b.cells[head.cellIndex]));
      body.append(...(down ? sorted.reverse() : sorted));
    });
  }
  for (const input of all("input[data-find]")) {
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of input.closest(".table").querySelector("tbody").rows) {
        const told = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => told.includes(word));
      }
    });
  }

  // What a mark stands for, beside the pointer.
  const tip = document.getElementById("tip");
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest("figure svg [data-tip]:not(.role-axis):not(.role-legend)");
    const told = mark ? mark.dataset.tip : "";
    tip.hidden = !told;
    if (!told) return;
    tip.textContent = told;
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)) + "px";
  });

  // The graph: hide a part, zoom, move.
  for (const figure of all("figure.zoomable")) {
    const svg = figure.querySelector("svg");
    const whole = svg.getAttribute("viewBox").split(" ").map(Number);
    let box = [...whole];
    const show = () => svg.setAttribute("viewBox", box.join(" "));
    const zoom = (factor) => {
      box = factor ? [box[0] + (box[2] * (1 - factor)) / 2, box[1] + (box[3] * (1 - factor)) / 2, box[2] * factor, box[3] * factor] : [...whole];
      show();
    };
    const move = (x, y) => {
      box[0] += x * box[2];
      box[1] += y * box[3];
      show();
    };
    svg.setAttribute("tabindex", "0");
    for (const button of all("button[data-zoom]", figure)) button.addEventListener("click", () => zoom(Number(button.dataset.zoom)));
    for (const check of all("input[data-show]", figure))
      check.addEventListener("change", () => figure.classList.toggle("hide-" + check.dataset.show, !check.checked));
    const keys = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] };
    svg.addEventListener("keydown", (event) => {
      if (keys[event.key]) move(...keys[event.key]);
      else if (event.key === "+" || event.key === "=") zoom(0.8);
      else if (event.key === "-") zoom(1.25);
      else if (event.key === "0") zoom(0);
      else return;
      event.preventDefault();
    });
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 0.9 : 1.1);
    }, { passive: false });
    let held = null;
    svg.addEventListener("pointerdown", (event) => { held = [event.clientX, event.clientY]; svg.setPointerCapture(event.pointerId); });
    svg.addEventListener("pointerup", () => { held = null; });
    svg.addEventListener("pointermove", (event) => {
      if (!held) return;
      const size = svg.getBoundingClientRect();
      move((held[0] - event.clientX) / size.width, (held[1] - event.clientY) / size.height);
      held = [event.clientX, event.clientY];
    });
  }
})();
