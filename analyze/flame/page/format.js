// Numbers and names as texts, and the colours of frames.
(function (root) {
  "use strict";

  // quantity prints a value in its unit with three or four digits: "1.23s".
  function quantity(v, unit) {
    if (unit === "nanoseconds") {
      if (v < 1e3) return `${Math.round(v)}ns`;
      if (v < 1e6) return `${(v / 1e3).toFixed(2)}µs`;
      if (v < 1e9) return `${(v / 1e6).toFixed(2)}ms`;
      return `${(v / 1e9).toFixed(2)}s`;
    }
    if (unit === "bytes") return scaled(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
    if (unit === "samples") return `${thousands(v)} sample${v === 1 ? "" : "s"}`;
    return v < 1e5 ? thousands(v) : scaled(v, 1000, ["", "k", "M", "G", "T", "P", "E"]);
  }

  function scaled(v, base, units) {
    let i = 0;
    while (v >= base && i + 1 < units.length) {
      v /= base;
      i++;
    }
    return (i === 0 ? String(Math.round(v)) : v.toPrecision(v >= 1000 ? 4 : 3)) + units[i];
  }

  // thousands prints a whole number with commas.
  function thousands(v) {
    return Math.round(v).toString().replace(/\B(?=(\d{3})+$)/g, ",");
  }

  // percent prints a share; a part is never printed as 100 %, nor as nothing.
  function percent(part, all) {
    if (!(all > 0) || !(part > 0)) return "0%";
    if (part >= all) return "100%";
    const p = 100 * part / all;
    if (p > 99.99) return ">99.99%";
    return p < 0.01 ? "<0.01%" : `${p.toFixed(2)}%`;
  }

  // cutMiddle shortens a text to n characters, in its middle.
  function cutMiddle(s, n) {
    if (s.length <= n) return s;
    const head = Math.ceil((n - 1) / 2);
    return `${s.slice(0, head)}…${s.slice(s.length - (n - 1 - head))}`;
  }

  // shortName leaves out the directories of a Go package: "ssa.(*block).kind".
  function shortName(name) {
    const end = name.search(/[(\[<{]/), head = end < 0 ? name : name.slice(0, end);
    const slash = head.lastIndexOf("/");
    return slash > 0 && head.indexOf(".", slash) > slash ? name.slice(slash + 1) : name;
  }

  // scopeEnd is the length of the scopes that a name begins with, outside of brackets: of
  // "std::sort", 5.
  function scopeEnd(name) {
    const head = name.search(/[(\[<{ ]/), most = head < 0 ? name.length : head;
    const colons = name.lastIndexOf("::", most - 1);
    return colons > 0 && colons + 2 < name.length ? colons + 2 : 0;
  }

  // baseName is the last element of a path.
  function baseName(path) {
    return path.slice(path.lastIndexOf("/") + 1) || path;
  }

  // hash spreads the texts that colours depend on.
  function hash(s) {
    let h = 2166136261;
    for (let i = 0; i < s.length; i++) h = Math.imul(h ^ s.charCodeAt(i), 16777619);
    return h >>> 0;
  }

  // The kinds of frames in the order of the data: hue, saturation, lightness of light and dark.
  const kinds = [
    { name: "user", h: 36, s: 92, light: 66, dark: 52 },
    { name: "kernel", h: 210, s: 68, light: 70, dark: 56 },
    { name: "BPF", h: 285, s: 58, light: 74, dark: 62 },
    { name: "JIT", h: 140, s: 48, light: 66, dark: 50 },
    { name: "inlined", h: 50, s: 78, light: 80, dark: 68 },
    { name: "unresolved", h: 220, s: 7, light: 76, dark: 52 },
  ];
  const inlinedKind = 4;

  // The states of threads, in the colours of Okabe and Ito, which colour-blind people can distinguish.
  const states = [
    { name: "running", of: ["running"], h: 26, s: 88, light: 62, dark: 54 },
    { name: "sleeping (S)", of: ["S"], h: 202, s: 74, light: 68, dark: 56 },
    { name: "disk (D)", of: ["D"], h: 327, s: 46, light: 74, dark: 64 },
    { name: "ready (R)", of: ["R", "R+", "new"], h: 56, s: 84, light: 58, dark: 52 },
    { name: "idle (I)", of: ["I"], h: 164, s: 60, light: 52, dark: 44 },
    { name: "other", of: [], h: 220, s: 7, light: 76, dark: 56 },
  ];

  // luminance is that of WCAG, of a colour by hue, saturation and lightness.
  function luminance(h, s, l) {
    const a = s / 100 * Math.min(l, 100 - l) / 100;
    return [[0, 0.2126], [8, 0.7152], [4, 0.0722]].reduce((sum, [n, part]) => {
      const k = (n + h / 30) % 12, v = l / 100 - a * Math.max(-1, Math.min(k - 3, 9 - k, 1));
      return sum + part * (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    }, 0);
  }

  // The darkest colour on which the text of frames, #16181d, has a contrast of 4.5, as WCAG asks.
  const darkest = 0.216;

  // css is a colour for frames, as much lighter as their text needs.
  function css(h, s, l) {
    while (luminance(h, s, l) < darkest) l++;
    return `hsl(${h} ${s}% ${l}%)`;
  }

  // kindColour is the colour of a kind, varied by the name so that neighbours differ.
  function kindColour(kind, name, dark) {
    const k = kinds[kind], v = hash(name) % 9 - 4;
    return css(k.h + v * (kind === 5 ? 0 : 1.2), k.s, (dark ? k.dark : k.light) + v * 0.9);
  }

  // stateNumber is the number in states of a state's label.
  function stateNumber(label) {
    const n = states.findIndex((s) => s.of.includes(label));
    return n < 0 ? states.length - 1 : n;
  }

  // stateColour is the colour of a state by its number, a little varied by the name.
  function stateColour(number, name, dark) {
    const k = states[number], v = hash(name) % 7 - 3;
    return css(k.h, k.s, (dark ? k.dark : k.light) + v * 0.9);
  }

  // objectColour is a colour for each object: the golden angle keeps near numbers apart.
  function objectColour(number, name, dark) {
    const v = hash(name) % 7 - 3;
    if (number < 0) return css(220, 7, dark ? 52 : 76);
    return css((number * 137.508 + 28) % 360, 58, (dark ? 54 : 72) + v);
  }

  // roundStep is the least of 1, 2 and 5 times a power of ten that is at least v.
  function roundStep(v) {
    const unit = 10 ** Math.floor(Math.log10(Math.max(v, 1e-12)));
    return [1, 2, 5, 10].map((n) => n * unit).find((s) => s >= v * 0.999999);
  }

  // ticksOf lists the round numbers from 0 to all, at most most of them.
  function ticksOf(all, most) {
    const step = roundStep(all / Math.max(1, most)), list = [];
    for (let i = 0; i * step <= all * 1.000001; i++) list.push(i * step);
    return { step, list };
  }

  // secondsText prints a tick in seconds with the digits of the step: "2.5s".
  function secondsText(v, step) {
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    return `${v.toFixed(Math.min(digits, 6))}s`;
  }

  root.symbolizeFormat = { quantity, thousands, percent, cutMiddle, shortName, scopeEnd, baseName, hash, kinds,
    inlinedKind, luminance, kindColour, states, stateNumber, stateColour, objectColour, roundStep, ticksOf, secondsText };
})(globalThis);
