// Everything works as plain links and forms; this fetches the same pages and swaps what changed.
"use strict";
(() => {
  const root = document.documentElement;
  const stored = (() => { try { return localStorage.getItem("instar-theme"); } catch { return null; } })();
  if (stored === "light" || stored === "dark") root.dataset.theme = stored; // before the first paint
  root.classList.add("scripted");

  let turn = 0, flying = 0, born = Date.now(), narrow = null;

  // The gallery keeps its panel, the other pages are replaced whole; pictures, folds and the focus stay what they were.
  function swap(next, whole) {
    const active = document.activeElement;
    const focus = active && active.name ? { name: active.name, at: active.selectionStart, value: active.value } : null;
    const pictures = new Map([...document.images].map((image) => [image.getAttribute("src"), image]));
    for (const image of next.images) {
      const old = pictures.get(image.getAttribute("src"));
      if (old) { image.replaceWith(old); pictures.delete(image.getAttribute("src")); } // no flicker
    }
    for (const sheet of next.querySelectorAll("link[rel=stylesheet]")) { // of a page that a task adds
      if (!document.head.querySelector(`link[href="${CSS.escape(sheet.getAttribute("href"))}"]`)) document.head.append(sheet);
    }
    const open = [...document.querySelectorAll("#content details:not([data-panel])")].map((each) => each.open);
    const parts = whole ? ["#content", "#limit", "[data-live]"] : ["#results", ".panel form", "#limit", "[data-live]"];
    for (const part of parts) {
      const [old, fresh] = [document.querySelector(part), next.querySelector(part)];
      if (old && fresh) old.replaceWith(fresh);
    }
    const folds = [...document.querySelectorAll("#content details:not([data-panel])")];
    if (folds.length === open.length) folds.forEach((each, n) => { each.open = open[n]; });
    if (whole) narrow = null;
    document.title = next.title;
    document.body.dataset.version = next.body.dataset.version;
    document.body.toggleAttribute("data-waiting", next.body.hasAttribute("data-waiting"));
    const links = [document.querySelectorAll(".top nav a"), next.querySelectorAll(".top nav a")];
    if (links[0].length === links[1].length) links[0].forEach((link, n) => { link.href = links[1][n].getAttribute("href"); });
    if (focus) {
      const again = document.querySelector(`[name="${CSS.escape(focus.name)}"]:not([type="hidden"])`);
      if (again) {
        again.focus({ preventScroll: true });
        if (again.type === "search" || again.type === "text") { again.value = focus.value; again.setSelectionRange?.(focus.at, focus.at); }
      }
    }
    phone();
    born = Date.now() - 1000 * Number(document.querySelector("[data-age]")?.dataset.age || 0);
  }

  async function go(url, { push = true, quiet = false } = {}) {
    if (quiet && flying) return; // what somebody asked for comes first
    const request = ++turn;
    flying += 1;
    const results = document.querySelector("#results");
    if (!quiet) results?.classList.add("loading");
    let answer, text;
    try {
      answer = await fetch(url, { headers: { Accept: "text/html" } });
      text = await answer.text();
    } catch {
      results?.classList.remove("loading");
      return; // the viewer was stopped: what is shown stays
    } finally {
      flying -= 1;
    }
    if (request !== turn) return; // a later question was asked meanwhile
    const next = new DOMParser().parseFromString(text, "text/html");
    const gallery = [document, next].every((each) => each.querySelector("[data-panel]"));
    swap(next, !gallery);
    const address = next.querySelector("link[rel=canonical]")?.getAttribute("href") ?? answer.url;
    if (push && address !== location.pathname + location.search) history.pushState(null, "", address);
    results?.classList.remove("loading");
  }

  const formAddress = (form) => {
    const kept = [...new FormData(form)].filter(([, value]) => String(value).trim() !== "");
    return `${form.getAttribute("action")}?${new URLSearchParams(kept)}`;
  };

  addEventListener("popstate", () => go(location.href, { push: false }));
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("#filters, #limit")) return;
    event.preventDefault();
    go(formAddress(event.target));
  });
  document.addEventListener("change", (event) => {
    const form = event.target.form;
    // a search was asked while it was typed; asked again on leaving the field, its answer would take the clicked link away
    if (!form || !form.matches("#filters, #limit") || event.target.type === "search") return;
    if (event.target.name === "run" || event.target.name === "judging") {
      const kept = [...new FormData(form)].filter(([name]) => ["run", "judging", "threshold", "q", "sort", "status"].includes(name) && !(name === "judging" && event.target.name === "run"));
      go(`${form.getAttribute("action")}?${new URLSearchParams(kept.filter(([, value]) => value !== ""))}`);
    } else go(formAddress(form));
  });
  let waiting;
  document.addEventListener("input", (event) => {
    if (event.target.type !== "search" || !event.target.form) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => go(formAddress(event.target.form)), 250);
  });
  document.addEventListener("click", (event) => {
    const toggle = event.target.closest("[data-theme-toggle]");
    if (toggle) {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      try { localStorage.setItem("instar-theme", root.dataset.theme); } catch { /* a private window */ }
    }
    if (event.target.closest("[data-keys]")) document.querySelector("#keys").showModal();
    const link = event.target.closest("a[data-swap]");
    if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    clearTimeout(waiting); // a search that was typed and not asked yet would undo the click
    go(link.href).then(() => { if (link.closest(".pages")) scrollTo({ top: 0 }); });
  });

  // --- keys
  const cards = () => [...document.querySelectorAll("[data-card] .open")];
  function move(step) {
    const all = cards();
    const here = all.findIndex((card) => card.closest("[data-card]").contains(document.activeElement));
    const next = all[here < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, here + step))];
    next?.focus({ preventScroll: true });
    next?.closest("[data-card]").scrollIntoView({ block: "nearest" });
  }
  const across = () => {
    const all = cards().map((card) => card.getBoundingClientRect().top);
    return Math.max(1, all.filter((top) => Math.abs(top - all[0]) < 2).length);
  };
  document.addEventListener("keydown", (event) => {
    if (event.metaKey || event.ctrlKey || event.altKey || document.querySelector("dialog[open]")) return;
    const typing = event.target.closest("input, select, textarea");
    if (event.key === "Escape") {
      if (typing) typing.blur();
      else { const back = document.querySelector("[data-back]"); if (back) location.assign(back.href); }
      return;
    }
    if (typing) return;
    const onCard = document.activeElement?.closest?.("[data-card]");
    const steps = { j: 1, k: -1, ArrowRight: onCard && 1, ArrowLeft: onCard && -1, ArrowDown: onCard && across(), ArrowUp: onCard && -across() };
    if (event.key === "/") { const search = document.querySelector("#search"); if (search) { document.querySelector("[data-panel]")?.setAttribute("open", ""); search.focus(); search.select(); event.preventDefault(); } }
    else if (event.key === "?") document.querySelector("#keys").showModal();
    else if (event.key === "[") document.querySelector("main a[rel=prev]")?.click();
    else if (event.key === "]") document.querySelector("main a[rel=next]")?.click();
    else if (steps[event.key]) { move(steps[event.key]); event.preventDefault(); }
  });

  // --- runs that go on
  function tick() {
    const age = document.querySelector("[data-age]");
    if (age) age.textContent = `${Math.max(0, Math.round((Date.now() - born) / 1000))} s`;
  }
  async function pulse() {
    if (document.hidden) return;
    let state;
    try { state = await (await fetch("/pulse")).json(); } catch { return; }
    document.querySelector("[data-live]")?.toggleAttribute("hidden", !state.live);
    const progress = document.querySelector("[data-progress]");
    if (progress) progress.textContent = state.progress;
    born = Date.now() - 1000 * state.age;
    const late = document.querySelector("[data-later]") || document.body.hasAttribute("data-waiting");
    const typing = document.activeElement?.closest?.("input, select");
    if ((state.version !== document.body.dataset.version || late) && !typing) await go(location.href, { push: false, quiet: true });
  }

  // On a phone the filters are closed until somebody asks for them.
  function phone() {
    const panel = document.querySelector("[data-panel]");
    const now = matchMedia("(max-width: 899px)").matches;
    if (panel && narrow !== now) { panel.toggleAttribute("open", !now); narrow = now; }
  }
  addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-keys], [data-theme-toggle]").forEach((button) => { button.hidden = false; });
    born = Date.now() - 1000 * Number(document.querySelector("[data-age]")?.dataset.age || 0);
    phone();
    addEventListener("resize", phone);
    setInterval(tick, 1000);
    setInterval(pulse, 2500);
    if (document.querySelector("[data-later]")) setTimeout(pulse, 800);
  });
})();
