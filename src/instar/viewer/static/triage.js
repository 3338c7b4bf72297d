// Marks of pairs: on the page of a pair by its buttons and keys, in a gallery by keys on the card in focus.
"use strict";
(() => {
  const KEYS = { r: "real", f: "false alarm", u: "unclear", x: "" };
  const panel = () => document.querySelector("[data-panel-mark]");
  const marking = () => document.querySelector("[data-marking]");
  const same = (a, b) => ["case", "rule", "target"].every((name) => a.dataset[name] === b.dataset[name]);

  // The pair that a key is for: the one of the page, or the card in focus.
  const current = () => {
    const card = document.activeElement?.closest?.("[data-card]");
    return card ? card.querySelector("[data-mark]") : panel();
  };

  function say(words, refused) {
    for (const place of document.querySelectorAll("[data-mark-status]")) {
      place.textContent = words;
      place.classList.toggle("refused", refused);
    }
  }

  function show(pair, stored) {
    for (const each of document.querySelectorAll("[data-mark], [data-panel-mark]")) {
      if (!same(each, pair)) continue;
      each.dataset.seen = stored.made;
      each.dataset.value = stored.mark;
      if (each.matches("[data-mark]")) {
        each.hidden = !stored.mark;
        each.querySelector("[data-word]").textContent = stored.mark;
        each.querySelector("[data-note]").textContent = stored.note;
        continue;
      }
      for (const button of each.querySelectorAll("[data-set]")) {
        if (button.dataset.set) button.setAttribute("aria-pressed", String(button.dataset.set === stored.mark));
        else button.disabled = !stored.mark;
      }
      const note = each.querySelector("[name=note]");
      if (note && note !== document.activeElement) note.value = stored.note;
    }
  }

  // One after the other: the second of two quick keys must know what the first one stored.
  let line = Promise.resolve();
  function mark(pair, value, note) {
    line = line.then(() => send(pair, value, note)).catch(() => say("The viewer does not answer: the mark was not stored.", true));
  }
  async function send(pair, value, note) {
    const of = marking();
    if (!of) return;
    const { token, run, judging } = of.dataset;
    const { case: name, rule, target, seen } = pair.dataset;
    const answer = await fetch("/mark", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Instar-Token": token },
      keepalive: true, // a link that is clicked right after does not end it
      body: JSON.stringify({ run, judging, case: name, rule, target, mark: value, note, seen }),
    });
    if (!answer.ok) { say(await answer.text(), true); return; }
    const stored = await answer.json();
    show(pair, stored);
    say(stored.mark ? `Stored: ${stored.mark}.` : "Stored: no mark.", false);
    await count();
  }
  // How many pairs have each mark; the cards stay, also those that a filter would not show any more.
  async function count() {
    const nav = document.querySelector("#by-mark");
    if (!nav) return;
    const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
    const fresh = page.querySelector("#by-mark");
    if (fresh && nav.isConnected) nav.replaceWith(fresh);
  }

  const noteOf = (pair) => (pair.matches("[data-panel-mark]") ? pair.querySelector("[name=note]")?.value : pair.querySelector("[data-note]").textContent) ?? "";

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-set]");
    if (button) mark(panel(), button.dataset.set, button.dataset.set ? noteOf(panel()) : "");
  });
  document.addEventListener("change", (event) => {
    if (event.target.name !== "note" || !panel()?.contains(event.target)) return;
    if (panel().dataset.value) mark(panel(), panel().dataset.value, event.target.value);
    else say("A note is kept with a mark: choose one.", true);
  });
  document.addEventListener("keydown", (event) => {
    if (event.metaKey || event.ctrlKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input, select, textarea")) {
      if (event.key === "Enter" && event.target.name === "note") event.target.blur(); // which stores it
      return;
    }
    const pair = current();
    const onCard = document.activeElement?.closest?.("[data-card]");
    const key = event.shiftKey ? event.key : event.key.toLowerCase(); // Caps Lock is no other key
    if (key in KEYS && pair && marking()) {
      mark(pair, KEYS[key], KEYS[key] ? noteOf(pair) : "");
      event.preventDefault();
    } else if (key === "n" && panel()) {
      const note = panel().querySelector("[name=note]");
      if (note) { note.focus(); note.select(); event.preventDefault(); }
    } else if (!onCard && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
      const way = document.querySelector(`[data-pair="${event.key === "ArrowRight" ? "next" : "previous"}"]`);
      if (way) { event.preventDefault(); line.finally(() => location.assign(way.href)); } // not before what was marked is stored
    }
  });
})();
