"use strict";
const ESCAPED = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "±": "$\\pm$", "…": "\\ldots{}" };
const OPEN = "close all", CLOSED = "open all";

const shown = (cell) => cell.innerText.trim();
const isNumber = (cell) => cell.tagName === "TD" && cell.classList.contains("n");
const bare = (cell) => (isNumber(cell) ? shown(cell).replaceAll(",", "") : shown(cell));
const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const latex = (cell) => {
  const parts = isNumber(cell) && /^(-?)([\d.,]+)(?:e([-+]\d+))?$/.exec(shown(cell));
  if (!parts) return shown(cell).replace(/[\\~^±…&%$#_{}]/g, (sign) => ESCAPED[sign] || `\\${sign}`);
  const [, sign, digits, power] = parts;
  const times = power ? ` \\times 10^{${Number(power)}}` : "";
  return sign || power ? `$${sign}${digits.replaceAll(",", "{,}")}${times}$` : digits;
};
const lines = (table, text, glue) => [...table.rows].map((row) => [...row.cells].map(text).join(glue));
const kinds = (table, right, left) => [...table.rows[0].cells].map((cell) => (cell.classList.contains("n") ? right : left));
const forms = {
  TSV: (table) => lines(table, (cell) => bare(cell).replace(/\s+/g, " "), "\t").join("\n"),
  CSV: (table) => lines(table, (cell) => quoted(bare(cell)), ",").join("\n"),
  Markdown: (table) => {
    const [head, ...body] = lines(table, (cell) => shown(cell).replaceAll("|", "\\|"), " | ").map((row) => `| ${row} |`);
    return [head, `|${kinds(table, "---:", "---").join("|")}|`, ...body].join("\n");
  },
  LaTeX: (table) => {
    const [head, ...body] = lines(table, latex, " & ").map((row) => `${row} \\\\`);
    return [`\\begin{tabular}{${kinds(table, "r", "l").join("")}}`, "\\hline", head, "\\hline", ...body, "\\hline", "\\end{tabular}"].join("\n");
  },
};

const give = async (text, button) => {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  const name = button.textContent;
  button.textContent = done ? "copied" : "not allowed";
  setTimeout(() => { button.textContent = name; }, 1200);
};
for (const table of document.querySelectorAll("table[data-copy]")) {
  const bar = Object.assign(document.createElement("div"), { className: "copy", textContent: "copy as " });
  for (const [name, form] of Object.entries(forms)) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
    button.addEventListener("click", () => give(form(table), button));
    bar.append(button);
  }
  table.parentElement.after(bar);
}

const candidates = [...document.querySelectorAll("#candidates details")];
if (candidates.length) {
  const filter = document.querySelector("#filter");
  const count = document.querySelector("#count");
  const toggle = document.querySelector("#toggle");
  filter.parentElement.hidden = false;
  toggle.textContent = CLOSED;
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const line of candidates) {
      const text = line.textContent.toLowerCase();
      line.hidden = !words.every((word) => text.includes(word));
    }
    count.textContent = `${candidates.filter((line) => !line.hidden).length} of ${candidates.length}`;
  });
  toggle.addEventListener("click", () => {
    const open = toggle.textContent === CLOSED;
    for (const line of candidates) line.open = open && !line.hidden;
    toggle.textContent = open ? OPEN : CLOSED;
  });
}

const tries = [...document.querySelectorAll("#tasks-all details")];
let opened = [];
addEventListener("beforeprint", () => {
  opened = tries.filter((line) => !line.open);
  for (const line of opened) line.open = true;
});
addEventListener("afterprint", () => {
  for (const line of opened) line.open = false;
});
