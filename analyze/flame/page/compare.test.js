// Tests of what a differential page computes, and of the address; `node --test` runs them.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
require("./model.js");
require("./format.js");
require("./compare.js");
require("./address.js");
const m = globalThis.symbolizeModel, c = globalThis.symbolizeCompare;
const a = globalThis.symbolizeAddress;

// The new side has 50, the base 100: new values count twice.
//   root            0
//     main          1  new 5       | base 20
//       a           2  new 30      | base 30, left 10
//       added       3  new 15      |
//       gone        4              | base 10
//         deep      5              | base 10
//     lost          6              | base 20
const data = {
  shown: 0, reversed: false, labels: [],
  events: [{ name: "new: cycles", unit: "count", total: 50 },
    { name: "base: cycles", unit: "count", total: 100 }],
  columns: [{ event: 0, values: [] }, { event: 1, values: [] }],
  scaling: { scale: 2, total: 100, raw: false, steps: [0.1, 1, 5] },
  forward: {
    frame: [-1, 0, 1, 2, 3, 4, 5], depth: [0, 1, 2, 2, 2, 3, 1], inlined: [],
    cells: [1, 0, 5, 0, 0, 1, 20, 0, 1, 0, 30, 0, 0, 1, 30, 10, 1, 0, 15, 0, 1, 1, 10, 0,
      1, 1, 10, 0, 1, 1, 20, 0],
  },
  reverse: { frame: [-1], depth: [0], inlined: [], cells: [] },
  frames: { name: ["main", "a", "added", "gone", "deep", "lost"] },
  top: { cells: [0, 0, 5, 50, 0, 1, 20, 80, 1, 0, 30, 30, 0, 1, 30, 40, 1, 0, 15, 15,
    1, 1, 10, 20, 1, 1, 10, 10, 1, 1, 20, 20] },
};
const model = m.decode(data);
const both = c.weighBoth(model, model.forward);

test("both sides are added up, the new one is scaled", () => {
  assert.deepEqual([...both.cum], [100, 100, 60, 30, 0, 0, 0]);
  assert.deepEqual([...both.self], [0, 10, 60, 30, 0, 0, 0]);
  assert.deepEqual([...both.base.cum], [100, 80, 40, 0, 20, 10, 20]);
  assert.equal(both.base.allLeft, 10);
  assert.equal(both.allLeft, 0);
});

test("several profiles a side have medians and significance, by function", () => {
  const tested = m.decode({ ...data, scaling: { ...data.scaling, tests: { base: 5, new: 4, total: 20,
    alpha: 0.05, flat: [[4, 5, 0.1, 0, 0.2], null, null, null, null, null],
    cum: [[16, 20, 0.1, 0.02, 0.0001], null, null, null, null, null] } } });
  const row = c.compareTable(tested).find((r) => r.frame === 0);
  assert.equal(row.cum, 100); // five times as much as the median, as the sums are
  assert.equal(row.baseCum, 80);
  assert.equal(row.cumChange, 20);
  assert.equal(c.testText(tested, 0, "cum"),
    "medians of 4 and 5: new 20 ±2.0%, base 16 ±10.0% (+25.00%), significant, p < 0.001");
  assert.equal(c.testText(tested, 0, "flat"),
    "medians of 4 and 5: new 5, base 4 ±10.0% (+25.00%), not significant, p = 0.200");
  assert.equal(c.testText(tested, 1, "cum"), "too light to be tested");
  assert.equal(c.testText(model, 0, "cum"), "");
  const light = c.compareTable(tested).find((r) => r.frame === 1);
  assert.equal(light.cumTest, undefined);
});

test("what vanished is listed once, heaviest first", () => {
  assert.deepEqual(c.vanished(model.forward, both), [4, 6]);
});

test("a sandwich has both sides", () => {
  const s = m.sandwich(model.forward, both, 1);
  assert.deepEqual([...s.callees.weights.cum], [60, 60]);
  assert.deepEqual([...s.callees.weights.base.cum], [40, 40]);
  assert.deepEqual([...s.callees.weights.base.left], [0, 10]);
  assert.deepEqual([...s.callers.weights.base.cum], [40, 40, 40]);
  assert.equal(m.sandwich(model.forward, m.weigh(model.forward, [1, 0]), 1).callers.weights.base,
    undefined);
});

test("the table has the functions of both sides and sorts by change", () => {
  const rows = c.compareTable(model), names = model.frames.name;
  const list = (by, up) => m.sortRows(rows, names, by, up).map((r) => names[r.frame]);
  assert.deepEqual(list("flatChange"), ["added", "a", "main", "deep", "gone", "lost"]);
  assert.deepEqual(list("flatChange", true), ["lost", "gone", "deep", "main", "a", "added"]);
  assert.deepEqual(list("baseCum").slice(0, 2), ["main", "a"]);
  const row = (name) => rows.find((r) => names[r.frame] === name);
  assert.deepEqual(row("a"), { frame: 1, flat: 60, cum: 60, baseFlat: 30, baseCum: 40,
    flatChange: 30, cumChange: 20, flatNoise: false, cumNoise: false });
  assert.deepEqual(row("lost"), { frame: 5, flat: 0, cum: 0, baseFlat: 20, baseCum: 20,
    flatChange: -20, cumChange: -20, flatNoise: false, cumNoise: false });
});

test("changes go by their size, and those within the noise of counting are last", () => {
  const sides = [{ total: 50, samples: 25 }, { total: 100, samples: 50 }]; // 4 and 2 a sample
  const counted = m.decode({ ...data, scaling: { ...data.scaling, sides } });
  const rows = c.compareTable(counted), names = counted.frames.name;
  const list = m.sortRows(rows, names, "flatChange", "size");
  assert.deepEqual(list.map((r) => names[r.frame]), ["added", "lost", "gone", "deep", "a", "main"]);
  const noise = (name) => rows.find((r) => names[r.frame] === name).flatNoise;
  // 60 against 30: 30² is less than 4 times (60·4 + 30·2); 0 against 10: 10² is more than 4·10·2.
  assert.deepEqual(["a", "main", "deep", "lost"].map(noise), [true, true, false, false]);
});

test("a change has the colour of its size", () => {
  for (const [change, step] of [[0, 0], [0.09, 0], [-0.09, 0], [0.1, 1], [-1, -2], [4.99, 2],
    [5, 3], [-80, -3]]) {
    assert.equal(c.changeStep(model, change), step, String(change));
  }
  const all = [-3, -2, -1, 0, 1, 2, 3].map((s) => c.changeColour(s, false));
  assert.equal(new Set(all).size, 7);
  assert.notEqual(c.changeColour(0, true), c.changeColour(0, false));
});

test("a value is printed with its change", () => {
  assert.equal(c.compareText(model, 60, 40),
    "new 60, 60.00% · base 40, 40.00% · +20 (+50.00%), +20.00 points");
  assert.equal(c.compareText(model, 0, 20), "new 0, 0% · base 20, 20.00% · -20 (gone), -20.00 points");
  assert.equal(c.compareText(model, 30, 0), "new 30, 30.00% · base 0, 0% · +30 (new), +30.00 points");
  assert.equal(c.compareText(model, 5, 5), "new 5, 5.00% · base 5, 5.00% · 0 (0%), 0 points");
  const raw = Object.assign({}, model, { scaling: { scale: 1, total: 100, raw: true, steps: [],
    sides: data.events } });
  assert.equal(c.compareText(raw, 30, 20),
    "new 30, 60.00% · base 20, 20.00% · +10 (+50.00%), +10.00% of the base");
  const all = 292929290, scaled = 300000000 * (all / 300000000 * (1 + 1e-15));
  const time = Object.assign({}, model, { scaling: { scale: 1, total: all, raw: false, steps: [],
    sides: data.events } });
  assert.notEqual(scaled, all);
  assert.match(c.compareText(time, scaled, all), /· 0 \(0%\), 0 points$/, "rounding is no change");
  assert.equal(c.signed(-0.001), "-<0.01");
});

test("the address keeps the state", () => {
  const first = a.firstState(model);
  assert.equal(a.toHash(first, model), "#");
  assert.deepEqual(a.fromHash("", model), first);
  const s = Object.assign({}, first, { zoomed: 3, colour: "kind", search: "a&b", down: false,
    sandwich: 1, marked: 2 });
  assert.deepEqual(a.fromHash(a.toHash(s, model), model), s);
});

test("an address that does not fit is no state", () => {
  const first = a.firstState(model);
  for (const hash of ["#event=1", "#zoom=7", "#zoom=-1", "#zoom=x", "#colour=<b>", "#function=99",
    "#mark=1.5", "#label0=3"]) {
    assert.deepEqual(a.fromHash(hash, model), first, hash);
  }
  const one = Object.assign({}, model, { differential: false });
  assert.equal(a.fromHash("#event=1", one).event, 1);
  assert.equal(a.fromHash("#colour=change", one).colour, "kind");
});
