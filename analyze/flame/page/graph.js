// Graph draws one tree on a canvas: only the rows in sight, so that deep trees cost no memory.
(function (root) {
  "use strict";

  const { layout } = root.symbolizeModel;
  const { cutMiddle, shortName, scopeEnd, inlinedKind, kindColour, objectColour, stateColour } = root.symbolizeFormat;
  const { change, changeStep, changeColour } = root.symbolizeCompare;

  const leastRow = 19, mostRow = 24, fontSize = 11.5, least = 0.6, textFrom = 22;
  const family = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

  class Graph {
    // The graph lives in scroller, an element that scrolls; events.hover, .choose get a node.
    constructor(scroller, events) {
      this.scroller = scroller;
      this.events = events;
      this.spacer = document.createElement("div");
      this.spacer.className = "spacer";
      this.canvas = document.createElement("canvas");
      this.canvas.tabIndex = 0;
      this.canvas.setAttribute("role", "img");
      this.spacer.append(this.canvas);
      scroller.append(this.spacer);
      this.shown = null; // what show was given
      this.boxes = [];
      this.rows = [];
      this.hover = this.selected = -1;
      this.widths = new Map();
      this.colours = new Map();
      this.listen();
    }

    listen() {
      const node = (e) => this.nodeAt(e.offsetX, e.offsetY);
      this.canvas.addEventListener("mousemove", (e) => this.setHover(node(e), e));
      this.canvas.addEventListener("mouseleave", () => this.setHover(-1, null));
      this.canvas.addEventListener("click", (e) => {
        const n = node(e);
        if (n >= 0) this.events.choose(this, n, e);
      });
      this.canvas.addEventListener("contextmenu", (e) => {
        const n = node(e);
        if (n < 0) return;
        e.preventDefault();
        this.events.menu(this, n, e);
      });
      this.scroller.addEventListener("scroll", () => {
        this.below = this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight;
        this.draw();
      }, { passive: true });
    }

    setHover(n, e) {
      if (n !== this.hover) {
        this.hover = n;
        this.draw();
      }
      this.canvas.style.cursor = n >= 0 ? "pointer" : "default";
      this.events.hover(this, n, e);
    }

    // show takes what is drawn: {model, tree, weights, zoomed, down, colour, dark, hit, searching,
    // first}. first is the depth of the first row.
    show(what) {
      const old = this.shown;
      this.shown = what;
      if (!old || old.dark !== what.dark || old.colour !== what.colour) this.colours.clear();
      if (!old || old.tree !== what.tree) this.hover = this.selected = -1;
      this.place();
      if (!old || old.tree !== what.tree || old.down !== what.down) this.toStart();
      this.draw();
    }

    // place computes the boxes for a width.
    place(wide = this.scroller.clientWidth) {
      const s = this.shown, width = this.width = Math.max(50, wide);
      const first = s.first || 0;
      this.boxes = layout(s.tree, s.weights.cum, s.zoomed, width, least)
        .filter((b) => b.row >= first);
      this.rows = [];
      for (const b of this.boxes) {
        b.row -= first;
        (this.rows[b.row] ||= []).push(b);
      }
      for (const row of this.rows) row.sort((a, b) => a.x - b.x);
      this.rowHeight = this.heightOf(this.rows.length);
      this.spacer.style.height = `${Math.max(1, this.rows.length) * this.rowHeight + 2}px`;
    }

    // heightOf is the height of rows: as much as the scroller has for all of them, within limits.
    heightOf(rows) {
      const space = Math.floor((this.scroller.clientHeight - 4) / Math.max(1, rows));
      return Math.max(leastRow, Math.min(mostRow, space));
    }

    toStart() {
      this.scroller.scrollTop = this.shown.down ? 0 : this.scroller.scrollHeight;
      this.below = 0;
    }

    // y is the top of a row within the spacer.
    y(row) {
      return this.shown.down ? row * this.rowHeight : this.space() - (row + 1) * this.rowHeight;
    }

    // space is the height that rows are placed in: all of the scroller where they fill it not.
    space() {
      return Math.max(this.rows.length * this.rowHeight, this.full ? 0 : this.scroller.clientHeight - 2);
    }

    // nodeAt returns the node at a place of the canvas, or -1.
    nodeAt(x, y) {
      const b = this.boxAt(x, y);
      return b && !b.thin ? b.node : -1;
    }

    boxAt(x, y) {
      if (!this.shown) return null;
      y += this.top || 0;
      const row = this.shown.down ? Math.floor(y / this.rowHeight)
        : Math.floor((this.space() - y) / this.rowHeight);
      const boxes = this.rows[row];
      if (!boxes) return null;
      let low = 0, high = boxes.length;
      while (low < high) {
        const mid = (low + high) >> 1;
        if (boxes[mid].x + boxes[mid].w <= x) low = mid + 1;
        else high = mid;
      }
      return low < boxes.length && boxes[low].x <= x ? boxes[low] : null;
    }

    // draw paints what is in sight; with full set, all of it, as for paper.
    draw() {
      if (!this.shown) return;
      const ratio = root.devicePixelRatio || 1;
      const height = this.full ? Math.min(this.space(), 16000 / ratio)
        : this.scroller.clientHeight;
      this.top = this.full ? 0 : this.scroller.scrollTop;
      const c = this.canvas, w = Math.round(this.width * ratio), h = Math.round(height * ratio);
      if (c.width !== w || c.height !== h) {
        c.width = w;
        c.height = h;
        c.style.width = `${this.width}px`;
        c.style.height = `${height}px`;
      }
      const g = c.getContext("2d");
      g.setTransform(ratio, 0, 0, ratio, 0, 0);
      g.clearRect(0, 0, this.width, height);
      g.font = `${fontSize}px ${family}`;
      g.textBaseline = "middle";
      this.rows.forEach((boxes, row) => {
        const y = this.y(row) - this.top;
        if (y > height || y + this.rowHeight < 0) return;
        for (const b of boxes) this.drawBox(g, b, y);
      });
      this.canvas.setAttribute("aria-label", `flame graph, ${this.boxes.length} frames in sight`);
    }

    drawBox(g, b, y) {
      const s = this.shown, gap = b.w > 3 ? 0.8 : 0;
      if (b.thin) {
        g.fillStyle = s.dark ? "#2a2f38" : "#e9ebef";
        g.fillRect(b.x, y, b.w - gap, this.rowHeight - 1);
        return;
      }
      const frame = s.tree.frame[b.node];
      const above = b.node < s.zoomed && b.w === this.width;
      const faded = above || s.searching && !(frame >= 0 && s.hit[frame]);
      g.fillStyle = s.searching && !faded ? (s.dark ? "#e064d8" : "#d63fd0")
        : this.colour(b.node, frame);
      g.globalAlpha = !above && !faded ? 1 : s.dark ? 0.38 : above ? 0.45 : 0.42;
      const h = this.rowHeight - (s.tree.inlined[b.node] ? 0.2 : 1);
      g.fillRect(b.x, y, Math.max(b.w - gap, 0.4), h);
      const picked = s.picked?.has(b.node) && s.tree === root.symbolizeApp?.tree;
      if (b.node === this.hover || b.node === this.selected || picked) {
        g.globalAlpha = 1;
        g.lineWidth = 2;
        g.strokeStyle = picked ? (s.dark ? "#7fb0ff" : "#1f57c3") : s.dark ? "#fff" : "#111";
        g.strokeRect(b.x + 1, y + 1, Math.max(b.w - gap - 2, 0.5), h - 2);
      }
      g.globalAlpha = !s.dark && (above || faded) ? 0.75 : 1;
      if (b.w >= textFrom) {
        const name = frame < 0 ? s.all : s.model.frames.name[frame];
        const text = this.fit(g, name, b.w - 8);
        if (text) {
          g.fillStyle = s.dark && (above || faded) ? "#e8eaee" : "#16181d";
          g.fillText(text, b.x + 4, y + this.rowHeight / 2);
        }
      }
      g.globalAlpha = 1;
    }

    colour(node, frame) {
      const s = this.shown;
      if (s.colour === "change") {
        const { cum, base } = s.weights;
        return changeColour(changeStep(s.model, change(s.model, cum[node], base.cum[node])), s.dark);
      }
      const state = s.states && frame >= 0 ? (s.states.nodes ? s.states.nodes[node] : s.states.frames[frame]) : -1;
      const key = state < 0 ? frame * 2 + s.tree.inlined[node] : -2 - frame * 8 - state;
      let c = this.colours.get(key);
      if (!c) {
        c = state < 0 ? this.colourOf(frame, s.tree.inlined[node] === 1)
          : stateColour(state, s.model.frames.name[frame], s.dark);
        this.colours.set(key, c);
      }
      return c;
    }

    colourOf(frame, inlined) {
      const s = this.shown;
      if (frame < 0) return s.dark ? "#7f8797" : "#cdd2db";
      const f = s.model.frames;
      if (s.colour === "object") return objectColour(f.object[frame], f.name[frame], s.dark);
      return kindColour(inlined ? inlinedKind : f.kind[frame], f.name[frame], s.dark);
    }

    // fit cuts a name to a width, at first the scopes before it; "" if nothing of it fits.
    fit(g, name, width) {
      if (this.measure(g, name) <= width) return name;
      name = shortName(name);
      if (this.measure(g, name) <= width) return name;
      name = name.slice(scopeEnd(name));
      if (this.measure(g, name) <= width) return name;
      let low = 0, high = Math.min(name.length, Math.ceil(width / 3));
      const dots = this.measure(g, "…");
      while (low < high) {
        const mid = (low + high + 1) >> 1;
        if (this.measure(g, name.slice(0, mid)) + dots <= width) low = mid;
        else high = mid - 1;
      }
      return low < 2 ? "" : `${name.slice(0, low)}…`;
    }

    // measure adds up the widths of characters, which are measured once each.
    measure(g, text) {
      let sum = 0;
      for (const ch of text.length > 2000 ? cutMiddle(text, 2000) : text) {
        let w = this.widths.get(ch);
        if (w === undefined) this.widths.set(ch, w = g.measureText(ch).width);
        sum += w;
      }
      return sum;
    }

    // resize is to be called when the scroller's size has changed.
    resize() {
      const s = this.scroller;
      if (!this.shown || s.clientWidth === 0) return;
      this.place();
      if (!this.shown.down) s.scrollTop = s.scrollHeight - s.clientHeight - (this.below || 0);
      this.draw();
    }

    // paper draws all rows, in the form of a sheet, for print; screen goes back.
    paper() {
      this.full = true;
      this.place(Math.max(this.width, this.rows.length * this.rowHeight * 1.7));
      this.draw();
    }

    screen() {
      this.full = false;
      this.resize();
    }

    // neighbour returns the node that an arrow key leads to.
    neighbour(key) {
      const s = this.shown, from = this.selected >= 0 ? this.selected : s.zoomed;
      const outward = s.down ? "ArrowDown" : "ArrowUp";
      const box = this.boxes.find((b) => b.node === from && !b.thin);
      if (!box) return s.zoomed;
      if (key === "ArrowLeft" || key === "ArrowRight") {
        const row = this.rows[box.row].filter((b) => !b.thin);
        const to = row[row.indexOf(box) + (key === "ArrowRight" ? 1 : -1)];
        return to ? to.node : from;
      }
      if (key !== outward) return Math.max(s.tree.parent[from], s.first ? this.boxes[0].node : 0);
      const inside = (b) => !b.thin && b.x + b.w > box.x && b.x < box.x + box.w;
      const next = (this.rows[box.row + 1] || []).filter(inside);
      return next.reduce((a, b) => (!a || b.w > a.w ? b : a), null)?.node ?? from;
    }

    select(node) {
      this.selected = node;
      const box = this.boxes.find((b) => b.node === node && !b.thin);
      if (box) {
        const y = this.y(box.row), s = this.scroller;
        if (y < s.scrollTop) s.scrollTop = y;
        if (y + this.rowHeight > s.scrollTop + s.clientHeight) {
          s.scrollTop = y + this.rowHeight - s.clientHeight;
        }
      }
      this.draw();
    }
  }

  root.symbolizeGraph = { Graph };
})(globalThis);
