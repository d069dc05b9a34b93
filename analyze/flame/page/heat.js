// Heat maps of samples over time, in which a range can be chosen.
(function (root) {
  "use strict";

  const { thousands, cutMiddle } = root.symbolizeFormat;

  const offsetRows = 50, axis = 22, gutter = 150;

  // seconds prints a time of the recording's clock, in ns, as options of the program read it.
  // Numbers of ns can be too large to be exact: they are BigInts.
  function seconds(ns) {
    const s = ns.toString().padStart(10, "0");
    return `${s.slice(0, -9)}.${s.slice(-9)}`;
  }

  // rangeText is the option for the samples between two places, both included: {column, row}.
  // In a grid by offset a place is a cell, else all of a column.
  function rangeText(grid, a, b) {
    const width = BigInt(grid.width), start = BigInt(grid.start);
    const byOffset = grid.rows.length === 0, part = width / BigInt(offsetRows);
    const begin = (p) => start + BigInt(p.column) * width + (byOffset ? BigInt(p.row) * part : 0n);
    const [from, to] = begin(a) <= begin(b) ? [a, b] : [b, a];
    const end = begin(to) + (byOffset ? part : width) - 1n;
    return `--time ${seconds(begin(from))},${seconds(end)}`;
  }

  // matrix returns the counts as rows of columns, and the greatest one.
  function matrix(grid) {
    const rows = grid.rows.length || offsetRows;
    const counts = Array.from({ length: rows }, () => new Float64Array(grid.columns));
    let most = 0;
    for (const c of grid.cells) {
      counts[c.r][c.c] = c.n;
      most = Math.max(most, c.n);
    }
    return { rows, counts, most };
  }

  // within counts the samples of a range.
  function within(grid, a, b) {
    const order = (p) => p.column * offsetRows + (grid.rows.length ? 0 : p.row);
    const low = Math.min(order(a), order(b)), high = Math.max(order(a), order(b));
    let sum = 0;
    for (const c of grid.cells) {
      const at = order({ column: c.c, row: c.r });
      if (at >= low && at <= high) sum += c.n;
    }
    return sum;
  }

  class Heat {
    // The map is drawn in place; show(text, e) prints what is under the pointer, chosen(a, b)
    // gets a range.
    constructor(place, grid, { dark, show, chosen }) {
      Object.assign(this, matrix(grid), { place, grid, dark, show, chosen });
      this.canvas = document.createElement("canvas");
      this.canvas.tabIndex = 0;
      this.canvas.setAttribute("role", "img");
      this.canvas.setAttribute("aria-label", "heat map of samples over time; arrows and Enter choose");
      place.append(this.canvas);
      this.from = this.to = null;
      this.cursor = { column: 0, row: 0 };
      this.listen();
      this.draw(); // an observer is called after the page has become visible
      new ResizeObserver(() => this.draw()).observe(place);
    }

    listen() {
      const c = this.canvas;
      c.addEventListener("mousedown", (e) => {
        this.from = this.to = this.at(e);
        this.dragging = this.from !== null;
        this.draw();
      });
      c.addEventListener("mousemove", (e) => {
        const p = this.at(e);
        this.show(p && this.describe(p), e);
        if (this.dragging && p) {
          this.to = p;
          this.draw();
        }
      });
      c.addEventListener("mouseleave", (e) => this.show(null, e));
      root.addEventListener("mouseup", () => {
        if (this.dragging) this.chosen(this.from, this.to);
        this.dragging = false;
      });
      c.addEventListener("keydown", (e) => this.key(e));
    }

    key(e) {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[e.key];
      const up = this.grid.rows.length ? -1 : 1; // offsets grow upwards
      if (step) {
        const clamp = (v, n) => Math.max(0, Math.min(n - 1, v));
        this.cursor = { column: clamp(this.cursor.column + step[0], this.grid.columns),
          row: clamp(this.cursor.row + up * step[1], this.rows) };
        if (e.shiftKey && this.from) this.to = this.cursor;
        else this.from = this.to = this.cursor;
        this.chosen(this.from, this.to);
        this.draw();
        e.preventDefault();
      }
    }

    sizes() {
      const left = this.grid.rows.length ? gutter : 46;
      const width = Math.max(200, this.place.clientWidth - 4);
      const cell = Math.min(24, (width - left) / Math.max(1, this.grid.columns));
      const high = this.grid.rows.length ? 15 : 8;
      return { left, width, cell, high, height: this.rows * high + axis };
    }

    at(e) {
      const { left, cell, high } = this.sizes();
      const column = Math.floor((e.offsetX - left) / cell), y = Math.floor(e.offsetY / high);
      const row = this.grid.rows.length ? y : this.rows - 1 - y;
      return column >= 0 && column < this.grid.columns && row >= 0 && row < this.rows
        ? { column, row } : null;
    }

    describe(p) {
      const { grid } = this, n = this.counts[p.row][p.column];
      const ms = grid.width / 1e6;
      const at = p.column * ms + (grid.rows.length ? 0 : p.row * ms / offsetRows);
      const row = grid.rows.length ? `${cutMiddle(grid.rows[p.row], 60)}, ` : "";
      return `${row}${(at / 1e3).toFixed(3)}s after the start: ${thousands(n)} samples`;
    }

    colour(n) {
      const v = Math.sqrt(n / this.most);
      return this.dark() ? `hsl(${40 - 16 * v} ${60 + 35 * v}% ${16 + 50 * v}%)`
        : `hsl(${46 - 40 * v} 92% ${92 - 52 * v}%)`;
    }

    draw() {
      const { left, width, cell, high, height } = this.sizes();
      const ratio = root.devicePixelRatio || 1, c = this.canvas, g = c.getContext("2d");
      c.width = Math.round(width * ratio);
      c.height = Math.round(height * ratio);
      c.style.width = `${width}px`;
      c.style.height = `${height}px`;
      g.setTransform(ratio, 0, 0, ratio, 0, 0);
      g.font = "11px system-ui, 'DejaVu Sans', sans-serif";
      const text = getComputedStyle(this.place).color;
      const gap = cell > 3 ? 0.7 : 0;
      for (let r = 0; r < this.rows; r++) {
        const y = (this.grid.rows.length ? r : this.rows - 1 - r) * high;
        for (let k = 0; k < this.grid.columns; k++) {
          const n = this.counts[r][k];
          g.fillStyle = n > 0 ? this.colour(n) : this.dark() ? "#22262e" : "#f1f2f5";
          g.fillRect(left + k * cell, y, cell - gap, high - 0.7);
          if (this.inRange(k, r)) {
            g.fillStyle = this.dark() ? "rgb(106 160 255 / 45%)" : "rgb(42 99 200 / 38%)";
            g.fillRect(left + k * cell, y, cell - gap, high - 0.7);
          }
        }
        if (this.grid.rows.length) {
          g.fillStyle = text;
          g.fillText(cutMiddle(this.grid.rows[r], 24), 0, y + high - 4, gutter - 6);
        }
      }
      this.drawAxes(g, text);
    }

    drawAxes(g, text) {
      const { left, cell, high, height } = this.sizes();
      g.fillStyle = text;
      const every = Math.ceil(70 / cell);
      for (let k = 0; k < this.grid.columns; k += every) {
        const s = k * this.grid.width / 1e9;
        g.fillText(`${s < 10 && s % 1 ? s.toFixed(2) : Math.round(s)}s`, left + k * cell, height - 6);
      }
      if (this.grid.rows.length) return;
      for (const part of [0, 0.25, 0.5, 0.75]) {
        const ms = part * this.grid.width / 1e6;
        g.fillText(`${Math.round(ms)}ms`, 0, (1 - part) * this.rows * high - 1);
      }
    }

    inRange(column, row) {
      if (!this.from) return false;
      const order = (c, r) => c * offsetRows + (this.grid.rows.length ? 0 : r);
      const a = order(this.from.column, this.from.row), b = order(this.to.column, this.to.row);
      const at = order(column, row);
      return at >= Math.min(a, b) && at <= Math.max(a, b);
    }
  }

  root.symbolizeHeat = { Heat, rangeText, matrix, within, seconds };
})(globalThis);
