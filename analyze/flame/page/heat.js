// Heat maps of samples over time, in which a range can be chosen.
(function (root) {
  "use strict";

  const { thousands, cutMiddle, quantity, ticksOf, secondsText } = root.symbolizeFormat;

  const offsetRows = 50, axis = 22, scale = 26, font = "11px system-ui, 'DejaVu Sans', sans-serif";

  // seconds prints a time of the recording's clock, in ns, as options of the program read it.
  // Numbers of ns can be too large to be exact: they are BigInts.
  function seconds(ns) {
    const s = ns.toString().padStart(10, "0");
    return `${s.slice(0, -9)}.${s.slice(-9)}`;
  }

  // timeOption is the option for the samples from a time to another, both included.
  const timeOption = (from, to) => `--time ${seconds(from)},${seconds(to)}`;

  // rangeOf returns the first and the last ns of the range between two places, both included:
  // {column, row}. In a grid by offset a place is a cell, else all of a column.
  function rangeOf(grid, a, b) {
    const width = BigInt(grid.width), start = BigInt(grid.start);
    const byOffset = grid.rows.length === 0, part = width / BigInt(offsetRows);
    const begin = (p) => start + BigInt(p.column) * width + (byOffset ? BigInt(p.row) * part : 0n);
    const [from, to] = begin(a) <= begin(b) ? [a, b] : [b, a];
    return [begin(from), begin(to) + (byOffset ? part : width) - 1n];
  }

  // matrix returns the counts as rows of columns, the greatest one, and the end of the scale: more
  // than chance allows of samples spread evenly over the cells that have any.
  function matrix(grid) {
    const rows = grid.rows.length || offsetRows;
    const counts = Array.from({ length: rows }, () => new Float64Array(grid.columns));
    let most = 0, sum = 0;
    for (const c of grid.cells) {
      counts[c.r][c.c] = c.n;
      most = Math.max(most, c.n);
      sum += c.n;
    }
    const mean = Math.floor(sum / Math.max(1, grid.cells.length));
    return { rows, counts, most, end: Math.max(most, mean + 4 * Math.ceil(Math.sqrt(mean)) + 3) };
  }

  // lifeSpan returns the columns between which a BPF program was loaded, with fractions.
  function lifeSpan(grid, l) {
    const column = (t) => Number(BigInt(t) - BigInt(grid.start)) / grid.width;
    const from = l.loaded ? Math.max(0, column(l.loaded)) : 0;
    return [from, Math.max(from, l.unloaded ? Math.min(grid.columns, column(l.unloaded)) : grid.columns)];
  }

  const lifeName = (l) => `bpf ${l.id} ${l.name}`;

  // lifeText tells when a BPF program was loaded and unloaded.
  function lifeText(grid, l) {
    const after = (t) => `${(Number(BigInt(t) - BigInt(grid.start)) / 1e9).toFixed(6)}s after the start`;
    const texts = [l.loaded ? `loaded ${after(l.loaded)}` : "loaded before",
      l.unloaded ? `unloaded ${after(l.unloaded)}` : "not unloaded"];
    if (l.loaded && l.unloaded) {
      texts.push(`lived ${quantity(Number(BigInt(l.unloaded) - BigInt(l.loaded)), "nanoseconds")}`);
    }
    return `BPF program ${l.id}, ${cutMiddle(l.name, 60)}: ${texts.join(", ")}`;
  }

  // shortTime prints a round number of ns: "20ms".
  const shortTime = (ns) => (ns > 0 ? quantity(ns, "nanoseconds").replace(/\.00(?=\D)/, "") : "0");

  // scaleTexts are the counts at the ends and in the middle of the colours: a colour is as far on
  // the scale as the root of its count.
  function scaleTexts(most) {
    return [...new Set([1, Math.round(most / 4), most].filter((n) => n >= 1))].map(thousands);
  }

  class Heat {
    // The map is drawn in place; show(text, e) prints what is under the pointer, chosen(a, b)
    // gets a range.
    constructor(place, grid, { dark, show, chosen }) {
      Object.assign(this, matrix(grid), { place, grid, dark, show, chosen });
      this.lives = grid.bpf_programs || []; // rows after those of samples
      this.canvas = document.createElement("canvas");
      this.canvas.tabIndex = 0;
      this.canvas.setAttribute("role", "img");
      this.canvas.setAttribute("aria-label", `${grid.rows.length ? "timeline" : "heat map"} of ` +
        "samples; arrows choose a range, with Shift a longer one");
      place.append(this.canvas);
      this.from = this.to = null;
      this.cursor = { column: 0, row: 0 };
      this.listen();
      this.draw(); // an observer is called after the page has become visible
      new ResizeObserver(() => this.draw()).observe(place);
    }

    listen() {
      const c = this.canvas;
      c.addEventListener("pointerdown", (e) => {
        this.from = this.to = this.at(e);
        this.dragging = this.from !== null;
        if (this.dragging) c.setPointerCapture(e.pointerId);
        this.draw();
      });
      c.addEventListener("pointermove", (e) => {
        const p = this.at(e, this.dragging);
        this.show(p && this.describe(p), e);
        if (this.dragging && p) {
          this.to = p;
          this.draw();
        }
      });
      c.addEventListener("pointerleave", (e) => this.show(null, e));
      c.addEventListener("pointerup", (e) => {
        if (this.dragging) this.chosen(this.from, this.to, e);
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
          row: clamp(this.cursor.row + up * step[1], this.allRows()) };
        if (e.shiftKey && this.from) this.to = this.cursor;
        else this.from = this.to = this.cursor;
        this.chosen(this.from, this.to, e);
        this.draw();
        e.preventDefault();
      }
    }

    allRows() { return this.rows + this.lives.length; }

    // sizes are of the whole width; rows are as high as the place has space for, at least as a line
    // of text.
    sizes() {
      const { grid, place } = this, width = Math.max(200, place.clientWidth - 4);
      const g = this.canvas.getContext("2d");
      g.font = font;
      const label = (s) => g.measureText(cutMiddle(s, 40)).width + 10;
      const left = grid.rows.length ? Math.min(Math.max(40, ...grid.rows.map(label), ...this.lives.map((l) => label(lifeName(l)))), width * 0.3) : 50;
      const cell = (width - left) / Math.max(1, grid.columns);
      const [low, most] = grid.rows.length ? [18, 40] : [6, 24];
      const space = Math.floor((place.clientHeight - axis - scale - 4) / Math.max(1, this.allRows()));
      const high = Math.max(low, Math.min(most, space));
      const top = grid.rows.length ? axis : 0; // the axis is above rows, which can be many
      return { left, width, cell, high, top, height: this.allRows() * high + axis + scale };
    }

    // at returns the place under the pointer, null outside; with near set, the nearest one.
    at(e, near) {
      const { left, cell, high, top } = this.sizes();
      let column = Math.floor((e.offsetX - left) / cell), y = Math.floor((e.offsetY - top) / high);
      if (near) {
        column = Math.max(0, Math.min(this.grid.columns - 1, column));
        y = Math.max(0, Math.min(this.allRows() - 1, y));
      }
      const row = this.grid.rows.length ? y : this.rows - 1 - y;
      return column >= 0 && column < this.grid.columns && row >= 0 && row < this.allRows()
        ? { column, row } : null;
    }

    describe(p) {
      const { grid } = this;
      if (p.row >= this.rows) return lifeText(grid, this.lives[p.row - this.rows]);
      const n = this.counts[p.row][p.column];
      const ms = grid.width / 1e6;
      const at = p.column * ms + (grid.rows.length ? 0 : p.row * ms / offsetRows);
      const row = grid.rows.length ? `${cutMiddle(grid.rows[p.row], 60)}, ` : "";
      return `${row}${(at / 1e3).toFixed(3)}s after the start: ${quantity(n, "samples")}`;
    }

    colour(n) {
      const v = Math.sqrt(n / this.end);
      return this.dark() ? `hsl(${40 - 16 * v} ${60 + 35 * v}% ${22 + 44 * v}%)`
        : `hsl(${46 - 40 * v} 92% ${86 - 46 * v}%)`;
    }

    draw() {
      const { left, width, cell, high, height, top } = this.sizes();
      const ratio = root.devicePixelRatio || 1, c = this.canvas, g = c.getContext("2d");
      c.width = Math.round(width * ratio);
      c.height = Math.round(height * ratio);
      c.style.width = `${width}px`;
      c.style.height = `${height}px`;
      g.setTransform(ratio, 0, 0, ratio, 0, 0);
      g.font = font;
      g.textBaseline = "middle";
      const text = getComputedStyle(this.place).color;
      const gap = cell > 3 ? 0.7 : 0;
      for (let r = 0; r < this.rows; r++) {
        const y = top + (this.grid.rows.length ? r : this.rows - 1 - r) * high;
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
          g.fillText(this.fit(g, this.grid.rows[r], left - 8), 0, y + high / 2);
        }
      }
      this.lives.forEach((l, i) => {
        this.drawLife(g, text, l, { left, cell, high, row: this.rows + i, y: top + (this.rows + i) * high });
      });
      this.drawAxes(g, text);
    }

    // drawLife draws the time over which a BPF program was loaded.
    drawLife(g, text, life, { left, cell, high, row, y }) {
      const [from, to] = lifeSpan(this.grid, life);
      g.fillStyle = this.dark() ? "#22262e" : "#f1f2f5";
      g.fillRect(left, y, this.grid.columns * cell, high - 0.7);
      g.fillStyle = this.dark() ? "hsl(212 55% 55%)" : "hsl(212 60% 52%)";
      g.fillRect(left + from * cell, y + high / 4, Math.max(2, (to - from) * cell), high / 2);
      for (let k = 0; k < this.grid.columns; k++) {
        if (this.inRange(k, row)) {
          g.fillStyle = this.dark() ? "rgb(106 160 255 / 45%)" : "rgb(42 99 200 / 38%)";
          g.fillRect(left + k * cell, y, cell, high - 0.7);
        }
      }
      g.fillStyle = text;
      g.fillText(this.fit(g, lifeName(life), left - 8), 0, y + high / 2);
    }

    // fit cuts a name in its middle.
    fit(g, name, width) {
      let n = Math.min(name.length, 60);
      while (n > 4 && g.measureText(cutMiddle(name, n)).width > width) n--;
      return cutMiddle(name, n);
    }

    // drawAxes draws round times below the map, those within a column beside it, and the scale.
    drawAxes(g, text) {
      const { left, cell, high, width, top } = this.sizes(), { grid } = this;
      const bottom = top + this.allRows() * high, y = top || bottom, sign = top ? -1 : 1;
      const all = grid.columns * grid.width / 1e9;
      g.fillStyle = text;
      const { step, list } = ticksOf(all, (width - left) / 70);
      for (const s of list) {
        const x = left + s * 1e9 / grid.width * cell, t = secondsText(s, step);
        if (x + g.measureText(t).width > width) break;
        g.fillRect(x, top ? y - 4 : y, 1, 4);
        g.fillText(t, x + (s === 0 ? 0 : -g.measureText(t).width / 2), y + sign * 12);
      }
      if (!grid.rows.length) {
        for (const part of [0, 0.2, 0.4, 0.6, 0.8]) {
          g.fillText(shortTime(part * grid.width), 0, bottom - part * this.rows * high - 6);
        }
      }
      this.drawScale(g, text, left, bottom + (top ? 14 : axis + 8));
    }

    drawScale(g, text, x, y) {
      if (!this.most) return;
      const texts = scaleTexts(this.most), wide = 120;
      const legend = `${texts.join(" … ")} ${this.most === 1 ? "sample" : "samples"} a cell`;
      x = Math.max(0, Math.min(x, this.sizes().width - wide - 8 - g.measureText(legend).width));
      for (let i = 0; i < wide; i += 2) {
        g.fillStyle = this.colour((i / wide) ** 2 * this.most);
        g.fillRect(x + i, y - 5, 2, 10);
      }
      g.fillStyle = text;
      g.fillText(legend, x + wide + 8, y);
    }

    inRange(column, row) {
      if (!this.from) return false;
      const order = (c, r) => c * offsetRows + (this.grid.rows.length ? 0 : r);
      const a = order(this.from.column, this.from.row), b = order(this.to.column, this.to.row);
      const at = order(column, row);
      return at >= Math.min(a, b) && at <= Math.max(a, b);
    }
  }

  root.symbolizeHeat = { Heat, rangeOf, timeOption, matrix, lifeSpan, lifeText };
})(globalThis);
