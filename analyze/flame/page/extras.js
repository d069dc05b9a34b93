// The panels that only some pages have: tables, and what only the base of a
// comparison has.
(function (root) {
  "use strict";

  const { cutMiddle, quantity, percent, thousands } = root.symbolizeFormat;
  const { vanished } = root.symbolizeCompare;
  const { make } = root.symbolizePanels;
  const { TablePanel } = root.symbolizeTables;

  const $ = (id) => document.getElementById(id);
  const mostGone = 200, mostCallers = 5;

  // showTables adds a tab for each table, and returns their names.
  function showTables(model) {
    return (model.tables || []).map((table, i) => {
      const name = `table-${i}`;
      const panel = make("div", { role: "tabpanel", id: `panel-${name}`,
        "aria-labelledby": `tab-${name}`, hidden: "" });
      $("tab-tables").append(make("button", { role: "tab", id: `tab-${name}`,
        "aria-controls": `panel-${name}` }, table.name));
      $("panel-tables").before(panel);
      new TablePanel(panel, table, make);
      return name;
    });
  }

  // showGone lists the calls that only the base has: no frame of the graph is theirs.
  function showGone(model, tree, weights) {
    const list = vanished(tree, weights), { unit, total } = model.scaling.sides[1];
    const { cum } = weights.base;
    $("tab-gone").hidden = false;
    $("tab-gone").textContent = list.length ? `Gone (${thousands(list.length)})` : "Gone";
    const parts = [make("p", { class: "note" }, list.length ? "Calls that only the base has, " +
      `${percent(list.reduce((a, i) => a + cum[i], 0), total)} of it; the graph has no frame of ` +
      "them. Heaviest first:" : "The new side has all calls of the base.")];
    for (const i of list.slice(0, mostGone)) {
      const path = [];
      for (let up = tree.parent[i]; up > 0; up = tree.parent[up]) {
        path.push(cutMiddle(model.frames.name[tree.frame[up]], 60));
      }
      const more = path.length > mostCallers ? " ← …" : "";
      parts.push(make("div", { class: "missing" }, make("b", null, percent(cum[i], total)),
        ` ${cutMiddle(model.frames.name[tree.frame[i]], 300)} `, make("small", null,
          `${quantity(cum[i], unit)}${path.length ? `; called by ${
            path.slice(0, mostCallers).join(" ← ")}${more}` : ""}`)));
    }
    if (list.length > mostGone) {
      parts.push(make("p", { class: "note" }, `and ${thousands(list.length - mostGone)} more`));
    }
    $("panel-gone").replaceChildren(...parts);
  }

  root.symbolizeExtras = { showTables, showGone };
})(globalThis);
