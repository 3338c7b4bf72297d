// All numbers come from the data in the page; this script shows and hides, and tells the figures which threshold it is.
(() => {
  const SHOWN = 6; // pictures, until all are asked for
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const views = new Map(); // place of a slider → what brings its figures up to date
  const current = {}; // place → threshold
  const choices = {}; // place → rule, where a panel lets one choose
  const whole = new Set(); // places whose pictures are all shown

  const rows = (columns) => {
    const names = Object.keys(columns);
    const whole = names.map((name) => columns[name].texts ? columns[name].at.map((i) => columns[name].texts[i]) : columns[name]);
    return (whole[0] ?? []).map((_, i) => Object.fromEntries(names.map((name, k) => [name, whole[k][i]])));
  };

  // --- figures
  const embed = async (element) => {
    const place = element.closest("[data-place]").dataset.place;
    const { spec, tables } = data.figures[element.dataset.figure];
    const follows = spec.params.map((one) => one.name);
    const now = () => ({ t: current[place], rule: choices[place] });
    const params = spec.params.map((one) => ({ ...one, value: now()[one.name] ?? one.value }));
    const datasets = Object.fromEntries(Object.entries(tables).map(([name, key]) => [name, rows(data.tables[key])]));
    const { view } = await window.vegaEmbed(element, { ...spec, params, datasets, config: data.config },
      { mode: "vega-lite", actions: false, renderer: "svg" });
    element.style.minHeight = "";
    const update = () => {
      for (const name of follows) if (now()[name] !== undefined) view.signal(name, now()[name]);
      return view.runAsync();
    };
    views.get(place).push(update);
    await update();
  };

  // --- sliders
  const sections = [...document.querySelectorAll("[data-place]")];
  const entry = (id) => document.querySelector(`.contents a[href="#${CSS.escape(id)}"]`)?.parentElement;
  const follow = (section, t) => {
    const place = section.dataset.place, slider = data.sliders[place];
    current[place] = t;
    const input = document.getElementById(`${place}-t`);
    input.value = t;
    input.setAttribute("aria-valuetext", slider.labels[t]);
    section.querySelector(".bar output").textContent = slider.labels[t];
    section.querySelector(".bar .below").hidden = !slider.noise.includes(t);
    for (const step of section.querySelectorAll("[data-t]")) step.hidden = Number(step.dataset.t) !== t;
    for (const block of section.querySelectorAll("[data-at]")) {
      block.hidden = !block.dataset.at.split(" ").includes(String(t));
      const line = entry(block.id);
      if (line) line.hidden = block.hidden;
    }
    for (const cell of section.querySelectorAll("[data-column]"))
      cell.classList.toggle("current", Number(cell.dataset.column) === t);
    for (const update of views.get(place)) update();
    for (const gallery of section.querySelectorAll(".gallery")) sift(gallery, t);
  };

  // --- the gallery
  const sift = (gallery, t) => {
    const filter = gallery.querySelector("[data-filter]"), rule = filter.value, all = gallery.querySelector("[data-all]");
    const ofRule = [...gallery.querySelectorAll(".pair")].filter((pair) => !rule || pair.dataset.rule === rule);
    const violated = ofRule.filter((pair) => Number(pair.dataset.last) >= t);
    const shown = whole.has(gallery.id) ? violated : violated.slice(0, SHOWN);
    for (const pair of gallery.querySelectorAll(".pair")) pair.hidden = !shown.includes(pair);
    const every = Number(filter.selectedOptions[0].dataset.violated?.split(" ")[t] ?? 0);
    gallery.querySelector(".shown").textContent = `${violated.length} of the ${ofRule.length} pairs shown here ${violated.length === 1 ? "violates" : "violate"} the rule at this threshold` +
      (every > violated.length ? `; ${every.toLocaleString("en")} of all pairs do` : "");
    all.hidden = violated.length <= SHOWN;
    all.textContent = whole.has(gallery.id) ? `Show the first ${SHOWN}` : `Show all ${violated.length}`;
  };

  const dialog = document.getElementById("large");
  let opened = null;
  const enlarge = (pair) => {
    opened = pair;
    dialog.querySelector(".body").replaceChildren(...[...pair.childNodes].map((node) => node.cloneNode(true)));
    const legend = pair.closest(".gallery").querySelector(".legend");
    dialog.querySelector(".legend-row").replaceChildren(...(legend ? [legend.cloneNode(true)] : []));
    if (!dialog.open) dialog.showModal();
    address.changed();
  };
  const go = (by) => {
    const shown = [...opened.closest(".pairs").querySelectorAll(".pair:not([hidden])")];
    enlarge(shown[(shown.indexOf(opened) + by + shown.length) % shown.length]);
  };
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") go(-1);
    if (event.key === "ArrowRight") go(1);
  });
  dialog.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (event.target === dialog || button?.dataset.close !== undefined) dialog.close();
    else if (button?.dataset.go) go(Number(button.dataset.go));
  });
  dialog.addEventListener("close", () => { opened?.focus(); opened = null; address.changed(); });

  // --- the theme
  const themed = (choice) => {
    if (choice) document.documentElement.dataset.theme = choice;
    else delete document.documentElement.dataset.theme;
    for (const button of document.querySelectorAll("[data-theme-choice]"))
      button.setAttribute("aria-pressed", String(button.dataset.themeChoice === choice));
  };
  for (const button of document.querySelectorAll("[data-theme-choice]"))
    button.addEventListener("click", () => {
      themed(button.dataset.themeChoice);
      try { localStorage.setItem("instar-theme", button.dataset.themeChoice); } catch { /* a file may not remember */ }
    });
  themed(document.documentElement.dataset.theme ?? "");

  // --- what the address says: thresholds, rules, what is folded, how many pictures, which one is open
  const choose = (list, value) => {
    list.selectedIndex = Math.max(0, [...list.options].findIndex((option) => option.value === value));
    if (list.dataset.ruleChoice !== undefined) choices[list.closest("[data-place]").dataset.place] = list.selectedIndex ? list.value : list.options[0].value;
  };
  const lists = [...document.querySelectorAll("select[id]")];
  const folded = [...document.querySelectorAll("main details[id]")].map((one) => [one, one.open]);
  const galleries = [...document.querySelectorAll(".gallery")];
  const pairsOf = (gallery) => [...gallery.querySelectorAll(".pair")];
  address.join({
    take: (values) => {
      whole.clear();
      for (const id of values.getAll("pictures")) whole.add(id);
      for (const list of lists) choose(list, values.get(list.id) ?? "");
      for (const [one, open] of folded) one.open = values.getAll("fold").includes(one.id) ? !open : open;
      for (const section of sections) {
        const place = section.dataset.place, { values: grid, start } = data.sliders[place];
        const t = grid.indexOf(values.get(`${place}-t`));
        follow(section, t < 0 ? start : t);
      }
      const [id, number] = (values.get("pair") ?? "").split(".");
      const pair = galleries.filter((gallery) => gallery.id === id).map((gallery) => pairsOf(gallery)[number])[0];
      if (pair) enlarge(pair); else if (dialog.open) dialog.close();
    },
    give: () => [
      ...sections.map(({ dataset: { place } }) => [`${place}-t`, data.sliders[place], current[place]])
        .filter(([, { start }, t]) => t !== start).map(([name, { values }, t]) => [name, values[t]]),
      ...lists.filter((list) => list.selectedIndex > 0).map((list) => [list.id, list.value]),
      ...folded.filter(([one, open]) => one.open !== open).map(([one]) => ["fold", one.id]),
      ...[...whole].map((id) => ["pictures", id]),
      ...galleries.filter((gallery) => gallery.contains(opened)).map((gallery) => ["pair", `${gallery.id}.${pairsOf(gallery).indexOf(opened)}`])],
  });

  // --- start
  for (const section of sections) {
    const place = section.dataset.place;
    views.set(place, []);
    document.getElementById(`${place}-t`).addEventListener("input", (event) => { follow(section, Number(event.target.value)); address.changed(); });
    for (const choice of section.querySelectorAll("[data-rule-choice]"))
      choice.addEventListener("change", () => {
        choose(choice, choice.value);
        for (const update of views.get(place)) update();
        address.changed();
      });
    for (const gallery of section.querySelectorAll(".gallery")) {
      gallery.querySelector("[data-filter]").addEventListener("change", () => { sift(gallery, current[place]); address.changed(); });
      gallery.addEventListener("click", (event) => {
        const pair = event.target.closest(".pair");
        if (pair) enlarge(pair);
        if (!event.target.closest("[data-all]")) return;
        if (!whole.delete(gallery.id)) whole.add(gallery.id);
        sift(gallery, current[place]);
        address.changed();
      });
    }
  }
  const contents = document.querySelector(".contents"), wide = matchMedia("(min-width: 1200px)");
  const unfold = () => { contents.open = wide.matches; };
  wide.addEventListener("change", unfold);
  contents.addEventListener("click", (event) => { if (event.target.closest("a")) unfold(); });
  unfold();
  tables({ ...data.csv, thresholds: Object.fromEntries(Object.entries(data.sliders).map(([place, { values }]) => [place, values])) });
  address.read();
  address.arrive();
  // What was folded away had no width when it was drawn.
  document.addEventListener("toggle", (event) => {
    if (event.target.open) window.dispatchEvent(new Event("resize"));
    address.changed();
  }, true);
  window.addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details:not([open])")) folded.open = true;
  });
  (async () => {
    const placed = scrollY;
    const figures = [...document.querySelectorAll("[data-figure]")];
    const behind = (element) => Number(element.closest("details:not([open])") !== null);
    for (const element of figures.sort((a, b) => behind(a) - behind(b))) await embed(element);
    if (Math.abs(scrollY - placed) < 2) address.arrive();
    document.documentElement.dataset.ready = "";
  })();
})();
