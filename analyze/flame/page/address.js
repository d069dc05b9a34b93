// The state of the page as the part of its address behind '#'. Nothing here touches the
// document.
(function (root) {
  "use strict";

  // colourings returns the ways to colour a page, the usual one first.
  function colourings(model, base) {
    if (model.differential || base) return ["change", "kind", "object"];
    if (!model.labels.some((l) => l.name === "state")) return ["kind", "object"];
    return model.events[model.shown]?.name === "wall" ? ["state", "kind", "object"]
      : ["kind", "object", "state"];
  }

  // firstState is the state without an address.
  function firstState(model) {
    return { event: model.shown, chosen: {}, zoomed: 0, reverse: model.reversed, down: true,
      colour: colourings(model)[0], search: "", sandwich: -1, marked: -1, range: null, base: null,
      focus: -1, hidden: [], overTime: false };
  }

  // toHash writes what differs from the first state: "#event=1&zoom=7".
  function toHash(s, model) {
    const p = new URLSearchParams(), first = firstState(model);
    if (s.event !== first.event) p.set("event", s.event);
    for (const l in s.chosen) p.set(`label${l}`, s.chosen[l]);
    if (s.zoomed) p.set("zoom", s.zoomed);
    if (s.reverse !== first.reverse) p.set("leaf", s.reverse ? 1 : 0);
    if (!s.down) p.set("flame", 1);
    if (s.colour !== first.colour) p.set("colour", s.colour);
    if (s.search) p.set("search", s.search);
    if (s.sandwich >= 0) p.set("function", s.sandwich);
    if (s.marked >= 0) p.set("mark", s.marked);
    if (s.overTime) p.set("order", "time");
    if (s.focus >= 0) p.set("focus", s.focus);
    if (s.hidden.length) p.set("hide", s.hidden.join("."));
    if (s.range) p.set("range", s.range.join("-"));
    if (s.base) p.set("base", s.base === "rest" ? s.base : s.base.join("-"));
    return `#${p}`;
  }

  // fromHash takes the state of an address as far as it fits the data. The base of a
  // differential page is no event to choose.
  function fromHash(hash, model) {
    const p = new URLSearchParams(hash.slice(1)), s = firstState(model);
    const number = (name, below, or) => {
      const v = Number(p.get(name) ?? NaN);
      return Number.isInteger(v) && v >= 0 && v < below ? v : or;
    };
    s.event = number("event", model.differential ? 1 : model.events.length, s.event);
    model.labels.forEach((l, i) => {
      const v = Number(p.get(`label${i}`) ?? NaN);
      if (Number.isInteger(v) && v >= -1 && v < l.values.length) s.chosen[i] = v;
    });
    if (p.has("leaf")) s.reverse = p.get("leaf") === "1";
    s.down = !p.has("flame");
    const range = (name) => {
      const m = /^(\d+)-(\d+)$/.exec(p.get(name) || ""), ticks = model.ranges?.ticks || 0;
      return m && Number(m[1]) <= Number(m[2]) && Number(m[2]) < ticks ? [Number(m[1]), Number(m[2])] : null;
    };
    s.range = range("range");
    if (s.range) s.base = p.get("base") === "rest" ? "rest" : range("base");
    if (colourings(model, s.base).includes(p.get("colour"))) s.colour = p.get("colour");
    s.search = p.get("search") || "";
    s.sandwich = number("function", model.frames.name.length, -1);
    s.marked = number("mark", model.frames.name.length, -1);
    s.overTime = p.get("order") === "time" && !!model.ranges && !model.ranges.counted;
    s.focus = number("focus", model.frames.name.length, -1);
    s.hidden = (p.get("hide") || "").split(".").filter((t) => /^\d+$/.test(t)).map(Number)
      .filter((f) => f < model.frames.name.length);
    s.zoomed = number("zoom", (s.reverse ? model.reverse : model.forward).n, 0);
    return s;
  }

  root.symbolizeAddress = { colourings, firstState, toHash, fromHash };
})(globalThis);
