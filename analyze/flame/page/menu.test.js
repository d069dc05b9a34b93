// Tests of what the menu of a frame does to a tree, and of what it copies.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
require("./model.js");
require("./format.js");
require("./address.js");
globalThis.symbolizePanels = { make: () => null };
require("./menu.js");
const m = globalThis.symbolizeModel, a = globalThis.symbolizeAddress;
const { focusOption } = globalThis.symbolizeMenu;

// root; main: a: b 5, self 1; b: a 2 (c left out: 3); other 4.
const model = m.decode({
  shown: 0, reversed: false, labels: [], events: [{}], columns: [{ event: 0, values: [] }],
  forward: { frame: [-1, 0, 1, 2, 2, 1, 3], depth: [0, 1, 2, 3, 2, 3, 1], inlined: [],
    cells: [2, 0, 1, 0, 1, 0, 5, 0, 2, 0, 2, 3, 1, 0, 4, 0] },
  reverse: { frame: [-1], depth: [0], inlined: [], cells: [] },
  frames: { name: ["main", "a", "b", "other"] },
});
const tree = model.forward, weights = m.weigh(tree, [1]);

test("focus keeps the stacks with a function", () => {
  assert.deepEqual([...weights.cum], [15, 11, 6, 5, 5, 5, 4]);
  assert.deepEqual([...m.focused(tree, weights, 2).cum], [10, 10, 5, 5, 5, 5, 0]);
  assert.deepEqual([...m.focused(tree, weights, 3).cum], [4, 0, 0, 0, 0, 0, 4]);
});

test("hidden functions leave their callees to their callers", () => {
  const v = m.without(tree, weights, [1]);
  assert.deepEqual([...v.tree.frame], [-1, 0, 2, 3]);
  assert.deepEqual([...v.weights.cum], [15, 11, 10, 4]);
  assert.equal(v.weights.self[1], 1);
  assert.equal(v.weights.left[2], 3);
});

test("selected frames are added up, one inside another once", () => {
  assert.equal(m.selectedWeight(tree, weights.cum, new Set([2, 3, 6])), 10);
  assert.equal(m.selectedWeight(tree, weights.cum, new Set()), 0);
});

test("a name is copied as an expression that matches it alone", () => {
  assert.equal(focusOption("std::vector<int>::push_back(int&&)[x]"),
    "--focus '^std::vector<int>::push_back\\(int&&\\)\\[x\\]$'");
  assert.equal(focusOption("it's"), "--focus '^it'\\''s$'");
});

test("the address keeps focus and hidden functions", () => {
  const s = Object.assign(a.firstState(model), { focus: 2, hidden: [1, 3] });
  const back = a.fromHash(a.toHash(s, model), model);
  assert.deepEqual([back.focus, back.hidden], [2, [1, 3]]);
  assert.deepEqual(a.fromHash("#hide=1.9.x", model).hidden, [1]);
});
