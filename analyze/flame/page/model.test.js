// Tests of what the page computes; `node --test` runs them.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
require("./model.js");
require("./format.js");
const m = globalThis.symbolizeModel, f = globalThis.symbolizeFormat;

// The tree of two columns: main (0) calls a (1), which calls b (2) and itself; main calls b.
//   root            0
//     main          1  self 1 | 0
//       a           2  self 10 | 2, left 5 | 0
//         a         3  self 3 | 0
//         b         4  self 4 | 0, inlined
//       b           5  self 0 | 7
const encoded = {
  frame: [-1, 0, 1, 1, 2, 2], depth: [0, 1, 2, 3, 3, 2], inlined: [4],
  cells: [1, 0, 1, 0, 1, 0, 10, 5, 0, 1, 2, 0, 1, 0, 3, 0, 1, 0, 4, 0, 1, 1, 7, 0],
};
const model = m.decode({
  forward: encoded,
  reverse: { frame: [-1], depth: [0], inlined: [], cells: [] },
  columns: [{ event: 0, values: [0, 1] }, { event: 0, values: [1, 1] }, { event: 1, values: [0, 0] }],
  frames: { name: ["main", "alloc", "free(void*)"], object: [0, 0, 1] },
  objects: [{ path: "/bin/prog" }, { path: "/lib/libc.so.6" }],
  top: { cells: [0, 0, 1, 23, 0, 1, 0, 9, 1, 0, 13, 22, 1, 1, 7, 7] },
});
const all = Uint8Array.of(1, 1, 1);

test("decodeTree finds parents and ends", () => {
  assert.deepEqual([...model.forward.parent], [-1, 0, 1, 2, 2, 1]);
  assert.deepEqual([...model.forward.end], [6, 6, 5, 4, 5, 6]);
  assert.equal(model.forward.deepest, 3);
});

test("weigh adds up the chosen columns", () => {
  const w = m.weigh(model.forward, all);
  assert.deepEqual([...w.cum], [32, 32, 24, 3, 4, 7]);
  assert.deepEqual([...w.self], [0, 1, 12, 3, 4, 7]);
  assert.equal(w.allLeft, 5);
  assert.deepEqual([...m.weigh(model.forward, Uint8Array.of(0, 1, 1)).cum], [9, 9, 2, 0, 0, 7]);
});

test("selectColumns goes by event and labels", () => {
  assert.deepEqual([...m.selectColumns(model, 0, {})], [1, 1, 0]);
  assert.deepEqual([...m.selectColumns(model, 0, { 0: 1 })], [0, 1, 0]);
  assert.deepEqual([...m.selectColumns(model, 0, { 0: 1, 1: 0 })], [0, 0, 0]);
  assert.deepEqual([...m.selectColumns(model, 1, {})], [0, 0, 1]);
});

test("layout gives each node its share of the width", () => {
  const { cum } = m.weigh(model.forward, all);
  const boxes = m.layout(model.forward, cum, 0, 320, 1);
  assert.deepEqual(boxes.map((b) => [b.node, b.x, b.w, b.row]),
    [[0, 0, 320, 0], [1, 0, 320, 1], [2, 0, 240, 2], [3, 0, 30, 3], [4, 30, 40, 3],
      [5, 240, 70, 2]]);
});

test("layout: the zoomed node and its callers have the whole width", () => {
  const { cum } = m.weigh(model.forward, all);
  const boxes = m.layout(model.forward, cum, 4, 100, 1);
  assert.deepEqual(boxes.map((b) => [b.node, b.w]), [[0, 100], [1, 100], [2, 100], [4, 100]]);
});

test("layout merges what is too thin", () => {
  const { cum } = m.weigh(model.forward, all);
  const boxes = m.layout(model.forward, cum, 0, 32, 6);
  const thin = boxes.filter((b) => b.thin);
  assert.deepEqual(thin.map((b) => [b.node, b.x, b.w, b.row]), [[2, 0, 7, 3]]);
  assert.deepEqual(boxes.filter((b) => !b.thin).map((b) => b.node), [0, 1, 2, 5]);
});

test("layout of nothing", () => {
  const { cum } = m.weigh(model.forward, Uint8Array.of(0, 0, 0));
  assert.deepEqual(m.layout(model.forward, cum, 0, 100, 1), []);
});

test("a search is an expression, or a text where it is none", () => {
  assert.equal(m.compileSearch(""), null);
  assert.ok(m.compileSearch("^al")("ALLOC"));
  assert.ok(!m.compileSearch("^lo")("alloc"));
  assert.ok(m.compileSearch("^al")("Alloc")); // smart case: an upper-case letter makes it exact
  assert.ok(!m.compileSearch("Alloc")("alloc"));
  assert.ok(m.compileSearch("a\\S+c")("ALLOC"));
  assert.ok(!m.compileSearch("Free(void")("free(void*)"));
  assert.ok(m.compileSearch("free(void")("free(void*)"));
});

test("a search finds names and objects", () => {
  assert.deepEqual([...m.matchFrames(model, m.compileSearch("alloc"))], [0, 1, 0]);
  assert.deepEqual([...m.matchFrames(model, m.compileSearch("libc"))], [0, 0, 1]);
  assert.deepEqual([...m.matchFrames(model, null)], [0, 0, 0]);
  const frames = { name: ["main", "alloc", "bash"], object: [-1, -1, -1], kind: [0, 0, 6],
    file: ["/src/bash.c:3", "", ""] };
  assert.deepEqual([...m.matchFrames({ frames, objects: [] }, m.compileSearch("bash\\.c$"))], [1, 0, 0]);
  assert.deepEqual([...m.matchFrames({ frames, objects: [] }, m.compileSearch("bash"))], [1, 0, 0]);
});

test("matched weight counts a stack once", () => {
  const { cum } = m.weigh(model.forward, all);
  const hit = m.matchFrames(model, m.compileSearch("alloc|free"));
  assert.equal(m.matchedWeight(model.forward, cum, hit, 0), 31);
  assert.equal(m.matchedWeight(model.forward, cum, hit, 2), 24);
});

test("sandwich: callers and callees of all calls, recursion once", () => {
  const w = m.weigh(model.forward, all);
  const a = m.sandwich(model.forward, w, 1);
  assert.deepEqual([...a.callees.tree.frame], [-1, 1, 2, 1]);
  assert.deepEqual([...a.callees.weights.cum], [24, 24, 4, 3]);
  assert.deepEqual([...a.callers.tree.frame], [-1, 1, 0]);
  assert.deepEqual([...a.callers.weights.cum], [24, 24, 24]);
  const b = m.sandwich(model.forward, w, 2);
  assert.deepEqual([...b.callers.tree.frame], [-1, 2, 0, 1, 0]);
  assert.deepEqual([...b.callers.weights.cum], [11, 11, 7, 4, 4]);
  assert.equal(b.callees.weights.cum[0], 11);
  assert.equal(b.callees.tree.inlined[1], 0, "one of its calls was not inlined");
});

test("sandwich of a deep recursion overflows no stack", () => {
  const n = 20_000;
  const tree = m.decodeTree({
    frame: [-1, ...Array.from({ length: n }, (_, i) => i % 2)],
    depth: Array.from({ length: n + 1 }, (_, i) => i), inlined: [], cells: [n, 0, 1, 0],
  });
  const s = m.sandwich(tree, m.weigh(tree, Uint8Array.of(1)), 0);
  assert.equal(s.callees.weights.cum[0], 1);
  assert.equal(s.callees.tree.n, n + 1);
});

test("the table adds up columns and sorts", () => {
  const rows = m.table(model, all), names = model.frames.name;
  const list = (by, up) => m.sortRows(rows, names, by, up).map((r) => r.frame);
  assert.deepEqual(rows, [{ frame: 0, flat: 1, cum: 32 }, { frame: 1, flat: 13, cum: 22 },
    { frame: 2, flat: 7, cum: 7 }]);
  assert.deepEqual(list("flat"), [1, 2, 0]);
  assert.deepEqual(list("cum"), [0, 1, 2]);
  assert.deepEqual(list("name"), [1, 2, 0]);
  assert.deepEqual(list("name", true), [0, 2, 1]);
});

test("quantities", () => {
  for (const [v, unit, want] of [
    [999, "nanoseconds", "999ns"], [1500, "nanoseconds", "1.50µs"],
    [2_500_000, "nanoseconds", "2.50ms"], [24.22e9, "nanoseconds", "24.22s"],
    [1, "samples", "1 sample"], [12088, "samples", "12,088 samples"], [512, "bytes", "512B"],
    [1536, "bytes", "1.50KiB"], [42, "count", "42"], [3.2e9, "count", "3.20G"],
  ]) assert.equal(f.quantity(v, unit), want);
});

test("a part is never all and never nothing", () => {
  assert.equal(f.percent(1, 3), "33.33%");
  assert.equal(f.percent(99999, 100000), ">99.99%");
  assert.equal(f.percent(1, 1e9), "<0.01%");
  assert.equal(f.percent(0, 5), "0%");
  assert.equal(f.percent(5, 5), "100%");
  assert.equal(f.percent(0, 0), "0%");
});

test("names are shortened", () => {
  assert.equal(f.shortName("cmd/compile/internal/ssa.(*block).kind"), "ssa.(*block).kind");
  assert.equal(f.shortName("main.main"), "main.main");
  assert.equal(f.shortName("operator/(a/b.c)"), "operator/(a/b.c)");
  for (const [name, rest] of [["std::sort", "sort"], ["a::f()::{lambda#1}", "f()::{lambda#1}"],
    ["std::map<a::b, c>::find", "map<a::b, c>::find"], ["<a::S as b::T>::f", "<a::S as b::T>::f"],
    ["a::b [clone .isra.0]", "b [clone .isra.0]"], ["malloc", "malloc"], ["::x", "::x"], ["a::", "a::"]]) {
    assert.equal(name.slice(f.scopeEnd(name)), rest);
  }
  assert.equal(f.cutMiddle("abcdefghij", 5), "ab…ij");
  assert.equal(f.baseName("/usr/lib/libc.so.6"), "libc.so.6");
});

test("each node has the state that most of it is in, of the selected columns", () => {
  const model = m.decode({ labels: [{ name: "comm", values: ["a"] }, { name: "state", values: ["S", "running", "x"] }],
    columns: [{ event: 0, values: [0, 0] }, { event: 0, values: [0, 1] }, { event: 0, values: [-1, -1] }],
    frames: { name: ["main", "nap", "burn"], object: [-1, -1, -1], kind: [0, 0, 0] }, objects: [],
    forward: { frame: [-1, 0, 1, 2], depth: [0, 1, 2, 2], inlined: [],
      cells: [2, 0, 7, 0, 1, 1, 4, 0, 0, 2, 2, 0] },
    reverse: { frame: [-1], depth: [0], inlined: [], cells: [] } });
  const states = (mask) => m.mainStates(model, model.forward, Uint8Array.from(mask), f.states.length, f.stateNumber);
  const all = states([1, 1, 1]);
  assert.deepEqual(Array.from(all.nodes), [1, 1, 1, 0]); // 1 is S, 0 running
  assert.deepEqual(all.frames, [0, 1, 0]); // main has no weight of its own
  assert.deepEqual(all.sums, [4, 7, 0, 0, 0, 2]);
  assert.deepEqual(Array.from(states([0, 1, 0]).nodes), [0, 0, 0, 0]);
  assert.equal(f.states[f.stateNumber("R+")].name, "ready (R)");
  assert.equal(f.stateNumber("never seen"), f.states.length - 1);
});

test("the text of frames has the contrast that WCAG asks for, on all colours", () => {
  const text = 0.00902; // luminance of #16181d
  const contrast = (colour) => {
    const [h, s, l] = /^hsl\((.*) (.*)% (.*)%\)$/.exec(colour).slice(1).map(Number);
    return (f.luminance(h, s, l) + 0.05) / (text + 0.05);
  };
  assert.ok(Math.abs(f.luminance(225, 13.725, 10) - text) < 0.0001);
  assert.ok(Math.abs(f.luminance(0, 0, 100) - 1) < 1e-9);
  for (const dark of [false, true]) {
    for (let n = 0; n < 360; n++) {
      assert.ok(contrast(f.objectColour(n - 1, `f${n}`, dark)) >= 4.5, `object ${n}, ${dark}`);
      f.kinds.forEach((k, i) => {
        assert.ok(contrast(f.kindColour(i, `f${n}`, dark)) >= 4.5, `${k.name} ${n}, ${dark}`);
      });
      f.states.forEach((s, i) => {
        assert.ok(contrast(f.stateColour(i, `f${n}`, dark)) >= 4.5, `${s.name} ${n}, ${dark}`);
      });
    }
  }
});
