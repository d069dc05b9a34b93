// Tests of the tables of a report.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
require("./format.js");
require("./tables.js");
const t = globalThis.symbolizeTables;

const table = {
  columns: [{ name: "program", kind: "number" }, { name: "time", kind: "nanoseconds" },
    { name: "name", kind: "text" }],
  rows: [[1, 10, "b"], [2, 300, "a"], [3, 10, "c"]],
};

test("values are printed by the kind of their column", () => {
  assert.equal(t.cellText(1234567, "count"), "1,234,567");
  assert.equal(t.cellText(1234, "number"), "1234");
  assert.equal(t.cellText(1500, "nanoseconds"), "1.50µs");
  assert.equal(t.cellText(0.05, "share"), "5.00%");
  assert.equal(t.cellText(2.5, "share"), "250.00%");
  assert.equal(t.cellText(0.00001, "share"), "<0.01%");
  assert.equal(t.cellText(0, "share"), "0.00%");
  assert.equal(t.cellText("<b>", "text"), "<b>");
});

test("a table is sorted by its first column of quantities", () => {
  assert.equal(t.firstSort(table), 1);
  assert.equal(t.firstSort({ columns: table.columns.slice(2) }), -1);
});

test("rows that are alike keep their order, and the table its own", () => {
  assert.deepEqual(t.sorted(table, 1, false).map((r) => r[0]), [2, 1, 3]);
  assert.deepEqual(t.sorted(table, 2, true).map((r) => r[0]), [2, 1, 3]);
  assert.deepEqual(table.rows.map((r) => r[0]), [1, 2, 3]);
});
