// Every table is sorted by its heads and saved as CSV; the tables of one name, one for each threshold, are sorted alike.
const tables = (csv) => {
  const SHOWN = 15, LONG = 25; // rows of a table with more than LONG, until all are asked for
  const sorted = new Map(); // name → [column, 1 or -1]
  const whole = new Set(); // names of tables with all their rows
  const number = new RegExp(`^(?:${csv.number})$`);
  const words = new Intl.Collator("en", { numeric: true });
  const originals = new WeakMap();
  const named = (name) => [...document.querySelectorAll(".table")].filter((table) => table.dataset.table === name);
  const plain = (node) => node.textContent.replace(/\s+/g, " ").trim();

  // --- sorting
  const value = (text) => {
    const [, sign, minus, digits] = /^([<>]?) ?([-+−]?)(∞|\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?)(?!\w)/.exec(text) ?? [];
    if (digits === undefined) return null;
    const size = digits === "∞" ? Infinity : Number(digits.replaceAll(",", ""));
    return size * (minus === "-" || minus === "−" ? -1 : 1) * (sign === "<" ? 1 - 1e-9 : sign === ">" ? 1 + 1e-9 : 1);
  };
  const arranged = (rows, column, direction) => {
    const cells = new Map(rows.map((row) => [row, plain(row.cells[column])]));
    const empty = (row) => ["", "–"].includes(cells.get(row));
    const numbers = rows.every((row) => empty(row) || value(cells.get(row)) !== null);
    const compare = numbers ? (a, b) => value(cells.get(a)) - value(cells.get(b)) || 0 : (a, b) => words.compare(cells.get(a), cells.get(b));
    // what is not known stands at the end, whichever way
    return [...rows.filter((row) => !empty(row)).sort((a, b) => direction * compare(a, b)), ...rows.filter(empty)];
  };
  const arrange = (name) => {
    for (const table of named(name)) {
      const body = table.querySelector("tbody"), heads = [...table.querySelectorAll("thead th")];
      if (!originals.has(body)) originals.set(body, [...body.rows]);
      const [column, direction] = sorted.get(name) ?? [];
      const rows = column === undefined ? originals.get(body) : arranged(originals.get(body), column, direction);
      body.replaceChildren(...rows);
      rows.forEach((row, place) => { row.hidden = rows.length > LONG && place >= SHOWN && !whole.has(name); });
      heads.forEach((head, place) => {
        if (place === column) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      });
      const more = table.querySelector(".all");
      more.hidden = rows.length <= LONG;
      more.textContent = whole.has(name) ? `Show the first ${SHOWN} rows` : `Show all ${rows.length} rows`;
    }
  };
  const turn = (name, head) => {
    const column = head.cellIndex, first = head.classList.contains("number") ? -1 : 1;
    const [before, direction] = sorted.get(name) ?? [];
    if (before !== column) sorted.set(name, [column, first]);
    else if (direction === first) sorted.set(name, [column, -first]);
    else sorted.delete(name);
    arrange(name);
    address.changed();
  };

  // --- CSV: the same rules as those of the files that Instar writes
  const field = (text) => {
    const safe = csv.formula.some((sign) => text.startsWith(sign)) && !number.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const lines = (table) => {
    const explained = table.querySelector("td.rule small") !== null;
    return [...table.querySelectorAll("tr")].map((row) => [...row.cells].flatMap((cell, place) => {
      const rule = explained && (originals.get(table.querySelector("tbody"))[0].cells[place].classList.contains("rule"));
      if (!rule) return [plain(cell)];
      const [name, words] = [cell.querySelector(".name") ?? cell, cell.querySelector("small")];
      return [plain(name), cell.tagName === "TH" ? "in words" : words ? plain(words) : ""];
    }).map(field).join(","));
  };
  const save = (table) => {
    const step = table.closest("[data-t]"), place = table.closest("[data-place]")?.dataset.place;
    const threshold = step && place ? `-${csv.thresholds[place][step.dataset.t]}` : "";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`\ufeff${lines(table).join("\r\n")}\r\n`], { type: "text/csv" }));
    link.download = `${table.dataset.table}${threshold}.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
  };

  // --- heads, buttons and the hint that there is more to see
  const button = (words, kind, action) => {
    const made = document.createElement("button");
    Object.assign(made, { type: "button", className: kind, textContent: words });
    made.addEventListener("click", action);
    return made;
  };
  const phone = matchMedia("screen and (max-width: 520px)");
  const room = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const box = target.parentElement;
      box.classList.remove("cards");
      const wide = target.scrollWidth > target.clientWidth + 1;
      const cards = wide && phone.matches && box.matches(".table"), over = wide && !cards;
      box.classList.toggle("cards", cards);
      box.classList.toggle("over", over);
      if (over) target.tabIndex = 0; else target.removeAttribute("tabindex");
    }
  });
  for (const table of document.querySelectorAll(".table")) {
    const name = table.dataset.table, heads = [...table.querySelectorAll("thead th")];
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.cells].forEach((cell, place) => { if (!cell.matches(".rule")) cell.dataset.head = plain(heads[place]); }); // for phones
    }
    for (const head of heads) {
      const made = button("", "sort", () => turn(name, head));
      made.append(...head.childNodes);
      head.append(made);
    }
    const tools = document.createElement("p"), hint = document.createElement("span");
    tools.className = "tools no-print";
    hint.className = "hint";
    hint.textContent = "More columns: scroll sideways →";
    tools.append(
      button("", "all", () => { if (!whole.delete(name)) whole.add(name); arrange(name); address.changed(); }),
      button("CSV", "csv", () => save(table)), hint);
    tools.querySelector(".csv").title = "Save this table as CSV";
    table.append(tools);
  }
  for (const scroll of document.querySelectorAll(".scroll:has(> table, > .chart)")) room.observe(scroll);
  const names = [...new Set([...document.querySelectorAll(".table")].map((table) => table.dataset.table))];
  address.join({
    take: (values) => {
      sorted.clear();
      whole.clear();
      for (const text of values.getAll("sort")) {
        const [, name, column, direction] = /^(.+)\.(\d+)([-+])$/.exec(text) ?? [];
        const table = name && named(name)[0];
        if (table && column < table.querySelectorAll("thead th").length) sorted.set(name, [Number(column), direction === "+" ? 1 : -1]);
      }
      for (const name of values.getAll("rows")) whole.add(name);
      names.forEach(arrange);
    },
    give: () => [
      ...[...sorted].map(([name, [column, direction]]) => ["sort", `${name}.${column}${direction > 0 ? "+" : "-"}`]),
      ...[...whole].map((name) => ["rows", name])],
  });
};
