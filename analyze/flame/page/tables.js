// Tables of a report, each in a tab of its own; they sort by their headings.
(function (root) {
  "use strict";

  const { cutMiddle, quantity, thousands } = root.symbolizeFormat;

  const isNumber = (column) => column.kind !== "text";

  // cellText prints a value by the kind of its column.
  function cellText(value, kind) {
    if (kind === "count") return thousands(value);
    if (kind === "nanoseconds") return quantity(value, kind);
    if (kind === "share") return value > 0 && value < 0.0001 ? "<0.01%" : `${(100 * value).toFixed(2)}%`;
    return String(value);
  }

  // sorted returns the rows by a column; texts in the order of their characters. Rows that are
  // alike keep their order.
  function sorted(table, column, up) {
    const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    return [...table.rows].sort((a, b) => (up ? 1 : -1) * compare(a[column], b[column]));
  }

  // firstSort is the column by which a table is sorted at first, -1 for none.
  function firstSort(table) {
    return table.columns.findIndex((c) => isNumber(c) && c.kind !== "number");
  }

  // TablePanel draws a table.
  class TablePanel {
    constructor(place, table, make) {
      Object.assign(this, { place, table, make });
      this.sort = firstSort(table);
      this.up = false;
      this.draw();
    }

    draw() {
      const { table, make } = this;
      const rows = this.sort < 0 ? table.rows : sorted(table, this.sort, this.up);
      const body = make("tbody");
      for (const r of rows) {
        body.append(make("tr", null, ...table.columns.map((c, i) => {
          const text = cellText(r[i], c.kind);
          return make("td", { class: isNumber(c) ? "" : "name", title: cutMiddle(text, 600) },
            cutMiddle(text, 160));
        })));
      }
      const head = make("tr", null, ...table.columns.map((c, i) => this.heading(c, i)));
      const parts = [make("table", { class: "data" }, make("thead", null, head), body)];
      if (table.note) parts.unshift(make("p", { class: "note" }, table.note));
      this.place.replaceChildren(...parts);
    }

    heading(column, i) {
      const { make } = this, on = this.sort === i;
      const th = make("th", { class: isNumber(column) ? "" : "name" }, make("button", { onclick: () => {
        this.up = on ? !this.up : !isNumber(column);
        this.sort = i;
        this.draw();
      } }, column.name + (on ? (this.up ? " ▴" : " ▾") : "")));
      if (on) th.setAttribute("aria-sort", this.up ? "ascending" : "descending");
      return th;
    }
  }

  root.symbolizeTables = { cellText, sorted, firstSort, TablePanel };
})(globalThis);
