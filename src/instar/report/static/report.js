"use strict";
// All numbers come from the data in the page; this script shows and hides, and tells the figures which threshold it is.
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const views = new Map(); // place of a slider → what brings its figures up to date
  const current = {}; // place → threshold
  const choices = {}; // place → rule, where a panel lets one choose

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
  const follow = (section, t) => {
    const place = section.dataset.place, slider = data.sliders[place];
    current[place] = t;
    const input = document.getElementById(`${place}-t`);
    input.setAttribute("aria-valuetext", slider.labels[t]);
    section.querySelector(".bar output").textContent = slider.labels[t];
    section.querySelector(".bar .below").hidden = !slider.noise.includes(t);
    for (const step of section.querySelectorAll("[data-t]")) step.hidden = Number(step.dataset.t) !== t;
    for (const cell of section.querySelectorAll("[data-column]"))
      cell.classList.toggle("current", Number(cell.dataset.column) === t);
    for (const update of views.get(place)) update();
    for (const gallery of section.querySelectorAll(".gallery")) sift(gallery, t);
  };

  // --- the gallery
  const sift = (gallery, t) => {
    const rule = gallery.querySelector("[data-filter]").value;
    const ofRule = [...gallery.querySelectorAll(".pair")].filter((pair) => !rule || pair.dataset.rule === rule);
    let shown = 0;
    for (const pair of gallery.querySelectorAll(".pair")) {
      pair.hidden = !ofRule.includes(pair) || Number(pair.dataset.last) < t;
      shown += !pair.hidden;
    }
    gallery.querySelector(".shown").textContent = `${shown} of ${ofRule.length} violate at this threshold`;
  };

  const dialog = document.getElementById("large");
  let opened = null;
  const enlarge = (pair) => {
    opened = pair;
    dialog.querySelector(".body").replaceChildren(...[...pair.childNodes].map((node) => node.cloneNode(true)));
    if (!dialog.open) dialog.showModal();
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
  dialog.addEventListener("close", () => opened?.focus());

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

  // --- start
  for (const section of document.querySelectorAll("[data-place]")) {
    const place = section.dataset.place;
    views.set(place, []);
    const input = document.getElementById(`${place}-t`);
    input.value = data.sliders[place].start; // browsers remember another one over a reload
    follow(section, data.sliders[place].start);
    input.addEventListener("input", () => follow(section, Number(input.value)));
    for (const choice of section.querySelectorAll("[data-rule-choice]")) {
      choice.selectedIndex = 0;
      choice.addEventListener("change", () => {
        choices[place] = choice.value;
        for (const update of views.get(place)) update();
      });
    }
    for (const gallery of section.querySelectorAll(".gallery")) {
      gallery.querySelector("[data-filter]").addEventListener("change", () => sift(gallery, current[place]));
      gallery.addEventListener("click", (event) => {
        const pair = event.target.closest(".pair");
        if (pair) enlarge(pair);
      });
    }
  }
  // What was folded away had no width when it was drawn.
  document.addEventListener("toggle", (event) => {
    if (event.target.open) window.dispatchEvent(new Event("resize"));
  }, true);
  window.addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details:not([open])")) folded.open = true;
  });
  (async () => {
    for (const element of document.querySelectorAll("[data-figure]")) await embed(element);
    document.documentElement.dataset.ready = "";
  })();
})();
