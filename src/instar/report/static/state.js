"use strict";
// What a reader chose stands in the address, behind the #, so that a link shows the same thing, also from a file:
// #poses-rates&poses-t=0.3&poses-rule=rotation(5). The first word is a place in the page.
const address = (() => {
  const controls = []; // each has take(values), from the address, and give(), a list of [name, value] that differ from the start
  let anchor = "", waiting = 0;

  const text = () => {
    const values = controls.flatMap((one) => one.give()).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
    return [...(anchor ? [anchor] : []), ...values].join("&");
  };
  const write = (how) => {
    clearTimeout(waiting);
    const now = text();
    history[how](how === "pushState" ? {} : history.state, "", now ? `#${now}` : location.href.split("#")[0]);
  };
  // A slider moves often, and some browsers allow few changes of the address.
  const changed = () => { clearTimeout(waiting); waiting = setTimeout(() => write("replaceState"), 200); };

  const read = () => {
    const parts = location.hash.slice(1).split("&");
    anchor = parts[0].includes("=") ? "" : parts.shift();
    const values = new URLSearchParams(parts.join("&"));
    for (const one of controls) one.take(values);
  };
  const arrive = () => {
    const place = anchor && document.getElementById(anchor);
    if (!place) return;
    for (let folded = place.closest("details"); folded; folded = folded.parentElement.closest("details")) folded.open = true;
    place.scrollIntoView();
    place.focus({ preventScroll: true });
  };

  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    anchor = link.hash.slice(1);
    write("pushState");
    arrive();
  });
  window.addEventListener("popstate", (event) => { read(); if (event.state === null) arrive(); });

  return { join: (control) => controls.push(control), changed, read, arrive };
})();
