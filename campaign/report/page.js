"use strict";
const cells = (row) => [...row.cells].map((cell) => cell.innerText.trim());
const rows = (table) => [...table.rows].map(cells);
const forms = {
  CSV: (table) => rows(table).map((row) => row.map((text) =>
    /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text).join(",")).join("\n"),
  Markdown: (table) => {
    const lines = rows(table).map((row) => `| ${row.map((t) => t.replaceAll("|", "\\|")).join(" | ")} |`);
    const ruler = [...table.rows[0].cells].map((c) => (c.classList.contains("n") ? "---:" : "---"));
    return [lines[0], `|${ruler.join("|")}|`, ...lines.slice(1)].join("\n");
  },
  LaTeX: (table) => {
    const signs = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "−": "$-$", "±": "$\\pm$", "…": "\\ldots{}" };
    const safe = (text) => text.replace(/[\\~^−±…&%$#_{}]/g, (sign) => signs[sign] || `\\${sign}`);
    const kinds = [...table.rows[0].cells].map((c) => (c.classList.contains("n") ? "r" : "l")).join("");
    const lines = rows(table).map((row) => `${row.map(safe).join(" & ")} \\\\`);
    return `\\begin{tabular}{${kinds}}\n\\hline\n${lines[0]}\n\\hline\n${lines.slice(1).join("\n")}\n\\hline\n\\end{tabular}`;
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
const filter = document.querySelector("#filter");
if (filter) {
  const lines = [...document.querySelectorAll("#candidates details")];
  const count = document.querySelector("#count");
  filter.parentElement.hidden = false;
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const line of lines) {
      const text = line.textContent.toLowerCase();
      line.hidden = !words.every((word) => text.includes(word));
      shown += !line.hidden;
    }
    count.textContent = `${shown} of ${lines.length}`;
  });
}
