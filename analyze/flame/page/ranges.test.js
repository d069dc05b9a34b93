// Tests of the sums of ranges of time.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
require("./model.js");
require("./format.js");
require("./compare.js");
require("./ranges.js");
require("./address.js");
const m = globalThis.symbolizeModel, r = globalThis.symbolizeRanges, a = globalThis.symbolizeAddress;
const f = globalThis.symbolizeFormat, c = globalThis.symbolizeCompare;

// root 0; main 1: a 2: a 3 (recursion); b 4. By leaf: a: a: main; a: main; b: main.
const model = m.decode({
  shown: 0, reversed: false, labels: [], events: [{ name: "cycles", unit: "count", total: 10 }],
  columns: [{ event: 0, values: [] }, { event: 0, values: [] }],
  forward: { frame: [-1, 0, 1, 1, 2], depth: [0, 1, 2, 3, 2], inlined: [], cells: [] },
  reverse: { frame: [-1, 1, 1, 0, 0, 2], depth: [0, 1, 2, 3, 2, 1], inlined: [], cells: [] },
  frames: { name: ["main", "a", "b"] }, top: { cells: [] },
});
// At ticks 0, 2, 2, 5, 9: a>a, b, b of the other column, a, and a frame that main calls and the page
// leaves out.
const ranges = r.decodeRanges({ start: "1000", tick: 10, ticks: 10,
  threads: [{ name: "t", pid: 1, tid: 1 }, { name: "u", pid: 1, tid: 2 }],
  series: [[0, 0], [1, 1]], time: [0, 2, 0, 3, 4], of: [0, 0, 1, 0, 0], place: [6, 8, 8, 4, 3],
  weight: [4, 2, 1, 3, 5], count: [1, 2, 1, 1, 1] });
const both = new Uint8Array([1, 1]), all = [[0, 9]];

test("the samples of a range are added up, both ends included", () => {
  const w = r.weighRange(model, ranges, both, [[2, 5]], false);
  assert.deepEqual([...w.cum], [6, 6, 3, 0, 3]);
  const one = r.weighRange(model, ranges, new Uint8Array([1, 0]), [[2, 5]], false);
  assert.deepEqual([...one.cum], [5, 5, 3, 0, 2]);
  assert.equal(r.countIn(ranges, both, [[2, 4]]), 3);
  assert.equal(r.weighRange(model, ranges, both, all, false).allLeft, 5);
});

test("by leaf, a sample is at the function where it ended", () => {
  const w = r.weighRange(model, ranges, both, [[0, 5]], true);
  assert.deepEqual([...w.cum], [10, 7, 4, 4, 3, 3]);
  assert.equal(r.weighRange(model, ranges, both, all, true).left[0], 5);
});

test("the table of a range counts recursion once", () => {
  const rows = r.tableOf(model.forward, r.weighRange(model, ranges, both, all, false), 3);
  assert.deepEqual(rows, [{ frame: 0, flat: 0, cum: 15 }, { frame: 1, flat: 7, cum: 7 },
    { frame: 2, flat: 3, cum: 3 }]);
});

test("the rest is what a range is not", () => {
  assert.deepEqual(r.rest(ranges, [2, 5]), [[0, 1], [6, 9]]);
  assert.deepEqual(r.rest(ranges, [0, 9]), []);
  const s = c.scalingOf({ total: 6, samples: 3 }, { total: 9, samples: 9 }, [1]);
  assert.equal(s.scale, 1.5);
  assert.equal(c.change({ scaling: s }, 9, 4.5), 50);
});

test("a grid has a round width and rows by thread", () => {
  const g = r.gridOf(ranges, both, 5, ["t", "u"], (t) => t);
  assert.deepEqual([g.width, g.columns, g.total], [20, 5, 6]);
  assert.deepEqual(g.cells, [{ c: 0, r: 0, n: 1 }, { c: 1, r: 0, n: 2 }, { c: 1, r: 1, n: 1 },
    { c: 2, r: 0, n: 1 }, { c: 4, r: 0, n: 1 }]);
  assert.deepEqual([...r.histogram(ranges, both, 5)], [1, 3, 1, 0, 1]);
});

test("ticks are round numbers", () => {
  assert.deepEqual(f.ticksOf(3.1, 8).list.map((v) => f.secondsText(v, 0.5)),
    ["0.0s", "0.5s", "1.0s", "1.5s", "2.0s", "2.5s", "3.0s"]);
  assert.equal(f.ticksOf(3600, 10).step, 500);
  assert.equal(f.roundStep(0.03), 0.05);
});

test("the address keeps the range and its base, as far as they fit", () => {
  const page = Object.assign({}, model, { ranges });
  const s = Object.assign(a.firstState(page), { range: [2, 5], base: "rest", colour: "change" });
  const back = a.fromHash(a.toHash(s, page), page);
  assert.deepEqual([back.range, back.base, back.colour], [[2, 5], "rest", "change"]);
  assert.deepEqual(a.fromHash("#range=2-5&base=6-9", page).base, [6, 9]);
  assert.equal(a.fromHash("#range=2-10", page).range, null);
  assert.equal(a.fromHash("#base=1-2", page).base, null);
  assert.equal(a.fromHash("#range=2-5", model).range, null);
});
