// Tests of what heat maps compute.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
require("./format.js");
require("./heat.js");
const h = globalThis.symbolizeHeat;

const offsets = { rows: [], start: "1700000000000000000", width: 1e9, columns: 3, total: 6,
  cells: [{ c: 0, r: 49, n: 1 }, { c: 1, r: 0, n: 2 }, { c: 2, r: 5, n: 3 }] };
const rows = { rows: ["a", "b"], start: "5000000", width: 1e6, columns: 2, total: 3,
  cells: [{ c: 0, r: 1, n: 1 }, { c: 1, r: 0, n: 2 }] };

test("a range of a grid by offset begins and ends in cells, exactly to the ns", () => {
  const range = h.timeOption(...h.rangeOf(offsets, { column: 2, row: 5 }, { column: 0, row: 49 }));
  assert.equal(range, "--time 1700000000.980000000,1700000002.119999999");
});

test("a range of rows has whole columns", () => {
  const range = h.timeOption(...h.rangeOf(rows, { column: 0, row: 1 }, { column: 1, row: 0 }));
  assert.equal(range, "--time 0.005000000,0.006999999");
});

test("matrix", () => {
  const m = h.matrix(rows);
  assert.deepEqual(m.counts.map((r) => [...r]), [[0, 2], [1, 0]]);
  assert.equal(m.most, 2);
  assert.equal(m.end, 8); // 1 or 2 samples are no alarm
  const busy = h.matrix({ ...rows, cells: [{ c: 0, r: 1, n: 100 }, { c: 1, r: 0, n: 500 }] });
  assert.equal(busy.end, 500);
});

test("lives of BPF programs are cut at the ends of the map", () => {
  const grid = { ...rows, columns: 4 };
  const whole = { id: 1, name: "a" };
  const inside = { id: 2, name: "b", loaded: "6500000", unloaded: "7000000" };
  const begins = { id: 3, name: "c", loaded: "8500000" };
  const ends = { id: 4, name: "d", loaded: "1000000", unloaded: "5250000" };
  assert.deepEqual([whole, inside, begins, ends].map((l) => h.lifeSpan(grid, l)),
    [[0, 4], [1.5, 2], [3.5, 4], [0, 0.25]]);
  assert.equal(h.lifeText(grid, inside), "BPF program 2, b: loaded 0.001500s after the start, " +
    "unloaded 0.002000s after the start, lived 500.00µs");
  assert.equal(h.lifeText(grid, whole), "BPF program 1, a: loaded before, not unloaded");
});
