// Stacks in the order of time, a lane for each thread.
(function (root) {
  "use strict";

  const { quantity, percent, ticksOf, secondsText, cutMiddle, kindColour, objectColour,
    inlinedKind, stateColour } = root.symbolizeFormat;
  const { make, showTooltip } = root.symbolizePanels;

  const $ = (id) => document.getElementById(id);
  const row = 17, head = 22, axis = 22, textFrom = 22;
  const font = "11.5px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

  // lanesOf lists the samples of each thread in the columns of a mask, with its weight and depth,
  // the heaviest thread first, and how far apart its samples usually are.
  function lanesOf(ranges, tree, mask) {
    const lanes = ranges.threads.map((t, i) => ({ thread: i, samples: [], weight: 0, deepest: 0 }));
    for (let k = 0; k < ranges.n; k++) {
      const [thread, column] = ranges.series[ranges.of[k]];
      if (!mask[column]) continue;
      const lane = lanes[thread];
      lane.samples.push(k);
      lane.weight += ranges.weight[k];
      lane.deepest = Math.max(lane.deepest, tree.depth[ranges.place[k] >> 1]);
    }
    for (const lane of lanes) {
      const gaps = lane.samples.slice(1).map((k, i) => ranges.time[k] - ranges.time[lane.samples[i]])
        .filter((g) => g > 0).sort((a, b) => a - b);
      lane.gap = Math.max(1, gaps[gaps.length >> 1] || 1);
    }
    return lanes.filter((l) => l.samples.length > 0)
      .sort((a, b) => b.weight - a.weight || a.thread - b.thread);
  }

  // pathOf lists the nodes of a stack from the root on, without those of hidden functions.
  function pathOf(tree, node, hidden) {
    const path = [];
    for (let i = node; i > 0; i = tree.parent[i]) {
      if (!hidden.includes(tree.frame[i])) path.unshift(i);
    }
    return path;
  }

  // boxesOf places the stacks of a lane between two ticks on width pixels. Samples after one
  // another that share their frames from the root on share a box; of several within a pixel the
  // first one is drawn. A sample is as long as to the next one, if that is near.
  function boxesOf(ranges, tree, lane, from, to, width, { hidden = [], focus = -1 } = {}) {
    const { samples, gap } = lane, { time, place } = ranges, boxes = [];
    const scale = width / (to - from), reach = gap * 1.5;
    let low = 0, high = samples.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (time[samples[mid]] < from - reach) low = mid + 1;
      else high = mid;
    }
    let open = [], last = -1, end = -1;
    for (let i = low; i < samples.length && time[samples[i]] < to; i++) {
      const at = time[samples[i]], x = (at - from) * scale;
      const next = i + 1 < samples.length ? time[samples[i + 1]] : Infinity;
      const until = Math.min(next - at <= reach ? next : at + gap, to);
      if (Math.floor(x) === last && until * scale - at * scale < 1) continue;
      last = Math.floor(x);
      const path = pathOf(tree, place[samples[i]] >> 1, hidden);
      if (focus >= 0 && !path.some((n) => tree.frame[n] === focus)) continue;
      const right = (until - from) * scale;
      let same = 0;
      if (x - end < 1) while (same < open.length && same < path.length && open[same].node === path[same]) same++;
      for (let d = 0; d < same; d++) open[d].w = right - open[d].x;
      open.length = same;
      for (let d = same; d < path.length; d++) {
        const x0 = Math.max(0, x), box = { node: path[d], x: x0, w: Math.max(right - x0, 0.6), row: d };
        open.push(box);
        boxes.push(box);
      }
      end = right;
    }
    return boxes;
  }

  class StackView {
    constructor(place, app) {
      Object.assign(this, { scroller: place, app, hiddenLanes: new Set(), colours: new Map() });
      this.canvas = make("canvas", { tabindex: 0, role: "img", "aria-label":
        "stacks over time; arrows move, plus and minus zoom, 0 shows all" });
      this.spacer = make("div", { class: "spacer" }, this.canvas);
      place.append(this.spacer);
      this.shown = { tree: app.model.forward };
      this.listen();
      new ResizeObserver(() => this.draw()).observe(place);
    }

    listen() {
      const c = this.canvas;
      c.addEventListener("wheel", (e) => {
        if (e.shiftKey) return; // scrolls
        e.preventDefault();
        if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.pan(e.deltaX / this.width);
        else this.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 300))), e.offsetX / this.width);
      }, { passive: false });
      c.addEventListener("pointerdown", (e) => {
        if (e.button !== 0) return;
        this.drag = { x: e.clientX, y: e.clientY, moved: false };
        c.setPointerCapture(e.pointerId);
      });
      c.addEventListener("pointermove", (e) => this.move(e));
      c.addEventListener("pointerup", (e) => {
        if (this.drag && !this.drag.moved) this.click(e);
        this.drag = null;
      });
      c.addEventListener("pointerleave", () => showTooltip($("tooltip"), null));
      c.addEventListener("dblclick", () => this.all());
      c.addEventListener("contextmenu", (e) => {
        const at = this.at(e);
        if (!at?.box) return;
        e.preventDefault();
        this.app.menu.open(this, at.box.node, e.clientX, e.clientY);
      });
      c.addEventListener("keydown", (e) => this.key(e));
      this.scroller.addEventListener("scroll", () => this.draw(), { passive: true });
    }

    key(e) {
      const steps = { ArrowLeft: () => this.pan(-0.1), ArrowRight: () => this.pan(0.1),
        "+": () => this.zoom(0.7, 0.5), "=": () => this.zoom(0.7, 0.5), "-": () => this.zoom(1.4, 0.5),
        0: () => this.all(), ArrowUp: () => (this.scroller.scrollTop -= 60),
        ArrowDown: () => (this.scroller.scrollTop += 60) };
      if (!steps[e.key] || e.ctrlKey || e.metaKey) return;
      steps[e.key]();
      e.preventDefault();
      e.stopPropagation();
    }

    // all shows the chosen range, or all of the recording.
    all() {
      const { ranges } = this.app.model, { range } = this.app.state;
      [this.from, this.to] = range ? [range[0], range[1] + 1] : [0, ranges.ticks];
      this.draw();
    }

    pan(part) {
      const { ticks } = this.app.model.ranges, span = this.to - this.from;
      const from = Math.max(0, Math.min(ticks - span, this.from + part * span));
      [this.from, this.to] = [from, from + span];
      this.draw();
    }

    zoom(factor, part) {
      const { ticks } = this.app.model.ranges, span = this.to - this.from;
      const now = Math.max(Math.min(20, ticks), Math.min(ticks, span * factor));
      const from = Math.max(0, Math.min(ticks - now, this.from + part * (span - now)));
      [this.from, this.to] = [from, from + now];
      this.draw();
    }

    move(e) {
      if (this.drag) {
        const dx = e.clientX - this.drag.x, dy = e.clientY - this.drag.y;
        if (!this.drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
        this.drag = { x: e.clientX, y: e.clientY, moved: true };
        this.scroller.scrollTop -= dy;
        this.pan(-dx / this.width);
        return;
      }
      const at = this.at(e);
      this.canvas.style.cursor = at ? "pointer" : "default";
      showTooltip($("tooltip"), at && this.facts(at), at?.box ? this.colour(at.box.node) : "transparent", e);
    }

    // facts describes what is under the pointer.
    facts({ lane, box }) {
      const { app } = this, { model } = app;
      if (!box) return { name: this.laneText(lane), lines: ["a click hides or shows its stacks"], numbers: "" };
      const f = model.forward.frame[box.node], o = model.frames.object[f];
      const { tick } = model.ranges, at = (x) => (this.from + x / this.width * (this.to - this.from)) * tick;
      return { name: model.frames.name[f], lines: [o >= 0 ? model.objects[o].path : "", model.frames.file[f],
        this.laneText(lane)].filter((l) => l),
      numbers: `${app.times.clock(at(box.x) / tick)}, for about ${quantity(at(box.x + box.w) - at(box.x), "nanoseconds")}` };
    }

    click(e) {
      const at = this.at(e);
      if (!at) return;
      if (at.box) {
        const f = this.app.model.forward.frame[at.box.node];
        this.app.go({ marked: this.app.state.marked === f ? -1 : f });
        return;
      }
      if (!this.hiddenLanes.delete(at.lane.thread)) this.hiddenLanes.add(at.lane.thread);
      this.draw();
    }

    laneText(lane) {
      const { app } = this, t = app.model.ranges.threads[lane.thread];
      const all = this.lanes.reduce((a, l) => a + l.weight, 0);
      return `${t.name}${t.tid >= 0 ? ` ${t.tid}` : ""}: ${quantity(lane.weight, app.unit)}, ${percent(lane.weight, all)}`;
    }

    // show brings the lanes to the state of the page.
    show() {
      const { app } = this, { state, model } = app;
      const key = JSON.stringify([state.event, state.chosen]);
      if (this.columns !== key) {
        this.columns = key;
        this.lanes = lanesOf(model.ranges, model.forward, app.mask);
      }
      const range = JSON.stringify(state.range);
      if (this.range !== range) {
        this.range = range;
        this.all();
      } else this.draw();
    }

    height(lane) { return head + (this.hiddenLanes.has(lane.thread) ? 0 : lane.deepest * row + 4); }

    // at returns the lane and the box under the pointer.
    at(e) {
      const y = e.offsetY + this.top;
      const lane = this.placed?.find((p) => y >= p.y && y < p.y + this.height(p.lane));
      if (!lane) return null;
      if (y < lane.y + head) return { lane: lane.lane };
      const r = Math.floor((y - lane.y - head) / row);
      const box = lane.boxes?.find((b) => b.row === r && e.offsetX >= b.x && e.offsetX < b.x + b.w);
      return box ? { lane: lane.lane, box } : null;
    }

    colour(node) {
      const { model, state, dark } = this.app, tree = model.forward, f = tree.frame[node];
      const { name, object, kind } = model.frames;
      if (state.colour === "state") return stateColour(this.app.states(tree).nodes[node], name[f], dark);
      return state.colour === "object" ? objectColour(object[f], name[f], dark)
        : kindColour(tree.inlined[node] ? inlinedKind : kind[f], name[f], dark);
    }

    draw() {
      if (!this.lanes || this.scroller.clientWidth === 0) return;
      const width = this.width = this.scroller.clientWidth;
      const high = this.scroller.clientHeight, ratio = root.devicePixelRatio || 1, c = this.canvas;
      let y = axis;
      this.placed = this.lanes.map((lane) => {
        const p = { lane, y };
        y += this.height(lane);
        return p;
      });
      this.spacer.style.height = `${y}px`;
      this.top = this.scroller.scrollTop;
      c.width = Math.round(width * ratio);
      c.height = Math.round(high * ratio);
      c.style.width = `${width}px`;
      c.style.height = `${high}px`;
      const g = c.getContext("2d");
      g.setTransform(ratio, 0, 0, ratio, 0, 0);
      g.font = font;
      g.textBaseline = "middle";
      const style = getComputedStyle(document.documentElement);
      for (const p of this.placed) {
        const at = p.y - this.top;
        if (at > high || at + this.height(p.lane) < 0) continue;
        this.drawLane(g, p, at, style);
      }
      this.drawAxis(g, style);
      c.setAttribute("aria-label", `stacks over time of ${this.lanes.length} threads; arrows move, plus and minus zoom, 0 shows all`);
    }

    drawLane(g, p, at, style) {
      const { app } = this, { model, state, hit } = app, closed = this.hiddenLanes.has(p.lane.thread);
      g.globalAlpha = 1;
      g.fillStyle = style.getPropertyValue("--hover");
      g.fillRect(0, at + 1, this.width, head - 3);
      g.fillStyle = style.getPropertyValue("--text");
      g.fillText(`${closed ? "▸" : "▾"} ${cutMiddle(this.laneText(p.lane), 90)}`, 4, at + head / 2);
      if (closed) return;
      p.boxes = boxesOf(model.ranges, model.forward, p.lane, this.from, this.to, this.width,
        { hidden: state.hidden, focus: state.focus });
      for (const b of p.boxes) {
        const y = at + head + b.row * row, f = model.forward.frame[b.node];
        if (y + row < 0 || y > this.scroller.clientHeight) continue;
        const faded = app.searching && !hit[f], w = Math.max(b.w - (b.w > 3 ? 0.6 : 0), 0.6);
        g.globalAlpha = faded ? 0.4 : 1;
        g.fillStyle = app.searching && !faded ? (app.dark ? "#e064d8" : "#d63fd0") : this.boxColour(b.node);
        g.fillRect(b.x, y, w, row - 1);
        if (b.w < textFrom) continue;
        g.globalAlpha = 1;
        g.fillStyle = faded && app.dark ? "#e8eaee" : "#16181d";
        const text = app.graph.fit(g, model.frames.name[f], b.w - 8);
        if (text) g.fillText(text, b.x + 4, y + row / 2);
      }
      g.globalAlpha = 1;
    }

    boxColour(node) {
      const { state, dark } = this.app, key = `${state.colour} ${dark}`;
      if (this.colourKey !== key) this.colours.clear();
      this.colourKey = key;
      if (!this.colours.has(node)) this.colours.set(node, this.colour(node));
      return this.colours.get(node);
    }

    drawAxis(g, style) {
      const { tick } = this.app.model.ranges, all = (this.to - this.from) * tick / 1e9, start = this.from * tick / 1e9;
      g.fillStyle = style.getPropertyValue("--panel");
      g.fillRect(0, 0, this.width, axis);
      g.fillStyle = style.getPropertyValue("--faint");
      const { step } = ticksOf(all, this.width / 90);
      for (let s = Math.ceil(start / step - 1e-9) * step; s <= start + all; s += step) {
        const x = (s - start) / all * this.width, t = secondsText(s, step), w = g.measureText(t).width;
        g.fillRect(x, axis - 5, 1, 4);
        if (x + w / 2 < this.width) g.fillText(t, Math.max(0, x - w / 2), 8);
      }
    }
  }

  root.symbolizeStacks = { StackView, lanesOf, boxesOf };
})(globalThis);
