// Tests of the places of stacks over time.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
require("./model.js");
require("./format.js");
require("./ranges.js");
globalThis.symbolizePanels = { make: () => null };
require("./stacks.js");
const m = globalThis.symbolizeModel, r = globalThis.symbolizeRanges;
const { lanesOf, boxesOf } = globalThis.symbolizeStacks;

// main 1: a 2; b 3: a 4.
const tree = m.decodeTree({ frame: [-1, 0, 1, 2, 1], depth: [0, 1, 2, 2, 3], inlined: [], cells: [] });
// Thread t at 0, 10, 20 and 60; thread u at 10, twice as heavy.
const ranges = r.decodeRanges({ start: "0", tick: 1, ticks: 100,
  threads: [{ name: "t", pid: 1, tid: 1 }, { name: "u", pid: 1, tid: 2 }],
  series: [[0, 0], [1, 0]], time: [0, 10, 0, 10, 40], of: [0, 0, 1, 0, 0], place: [4, 4, 2, 8, 2],
  weight: [1, 1, 9, 1, 1], count: [1, 1, 1, 1, 1] });
const lanes = lanesOf(ranges, tree, [1]);
const text = (b) => [b.node, b.row, Math.round(b.x), Math.round(b.w)].join(" ");

test("lanes are threads, the heaviest first", () => {
  assert.deepEqual(lanes.map((l) => [l.thread, l.weight, l.deepest, l.gap]), [[1, 9, 1, 1], [0, 4, 3, 10]]);
  assert.deepEqual(lanesOf(ranges, tree, [0]), []);
});

test("stacks after one another share the frames that they share from the root on", () => {
  const boxes = boxesOf(ranges, tree, lanes[1], 0, 100, 200).map(text);
  // main is one box of three samples, then one alone as long as usual.
  assert.deepEqual(boxes, ["1 0 0 60", "2 1 0 40", "3 1 40 20", "4 2 40 20", "1 0 120 20"]);
});

test("hidden functions leave no gap, focus leaves other stacks out", () => {
  const hidden = boxesOf(ranges, tree, lanes[1], 0, 100, 200, { hidden: [2] }).map(text);
  assert.deepEqual(hidden.slice(0, 3), ["1 0 0 60", "2 1 0 40", "4 1 40 20"]);
  const focused = boxesOf(ranges, tree, lanes[1], 0, 100, 200, { focus: 2 }).map(text);
  assert.deepEqual(focused, ["1 0 40 20", "3 1 40 20", "4 2 40 20"]);
});

test("a part of the time is drawn on all of the width", () => {
  assert.deepEqual(boxesOf(ranges, tree, lanes[1], 15, 25, 100).map(text),
    ["1 0 0 100", "2 1 0 50", "3 1 50 50", "4 2 50 50"]);
});

test("of several samples within a pixel one is drawn", () => {
  const n = 10_000;
  const many = r.decodeRanges({ ...ranges, ticks: n, threads: ranges.threads, series: ranges.series,
    time: Array.from({ length: n }, (_, i) => (i ? 1 : 0)), of: Array(n).fill(0),
    place: Array.from({ length: n }, (_, i) => (i % 2 ? 4 : 8)), weight: Array(n).fill(1), count: Array(n).fill(1) });
  assert.ok(boxesOf(many, tree, lanesOf(many, tree, [1])[0], 0, n, 100).length <= 400);
});
