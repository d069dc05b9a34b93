// The samples of a page by time: the strip above the graph and the panel of maps, in which a range
// can be chosen, and another one to compare it with.
(function (root) {
  "use strict";

  const { thousands, percent, quantity, ticksOf, secondsText } = root.symbolizeFormat;
  const { make, showTooltip } = root.symbolizePanels;
  const { Heat, rangeOf, timeOption } = root.symbolizeHeat;
  const { countIn, rest, histogram, gridOf } = root.symbolizeRanges;

  const $ = (id) => document.getElementById(id);
  const bar = 3, axis = 16, mostColumns = 240;

  // quoted is a path as a shell reads it.
  const quoted = (path) => (/^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replace(/'/g, "'\\''")}'`);

  // rangesOf makes ranges without stacks of counts by time, for pages that have no others.
  function rangesOf(heat) {
    const { start, width, columns } = heat, parts = 50;
    const cells = [...heat.cells].sort((a, b) => a.c - b.c || a.r - b.r);
    return { start, tick: width / parts, ticks: columns * parts, threads: [], series: [[0, 0]],
      n: cells.length, time: cells.map((c) => c.c * parts + c.r), of: cells.map(() => 0),
      count: cells.map((c) => c.n), counted: true };
  }

  // TimePanel is the strip of bars above the graph, and the maps beside it. The page works without
  // stacks of ranges, too: then it prints the command for a range.
  class TimePanel {
    constructor(app, ranges) {
      Object.assign(this, { app, ranges, mode: "range", counts: [] });
      this.canvas = make("canvas", { tabindex: 0, role: "img", "aria-describedby": "range-text",
        "aria-label": "samples over time; arrows choose a range, with Shift a longer one" });
      $("times").hidden = false;
      $("strip").append(this.canvas);
      this.maps = [];
      this.listen();
      new ResizeObserver(() => this.draw()).observe($("strip"));
    }

    listen() {
      const c = this.canvas;
      c.addEventListener("pointerdown", (e) => {
        this.from = this.to = this.tickAt(e);
        this.dragging = e.shiftKey && this.app.state.range ? "base" : this.mode;
        c.setPointerCapture(e.pointerId);
      });
      c.addEventListener("pointermove", (e) => this.move(e));
      c.addEventListener("pointerleave", (e) => showTooltip($("tooltip"), null, "", e));
      c.addEventListener("pointerup", (e) => this.release(e));
      c.addEventListener("keydown", (e) => this.key(e));
      $("compare-rest").addEventListener("click", () => this.compareRest());
      $("compare-range").addEventListener("click", () => this.setMode(this.mode === "base" ? "range" : "base"));
      $("range-clear").addEventListener("click", () => this.clear());
      $("tab-time").addEventListener("click", () => this.showMaps());
    }

    // setMode sets what the next drag chooses: the range or the base.
    setMode(mode) {
      this.mode = mode;
      this.showText();
    }

    clear() {
      this.mode = "range";
      this.app.chooseRange({ range: null, base: null });
    }

    compareRest() {
      const { state } = this.app;
      if (!state.range || this.ranges.counted) return;
      this.app.chooseRange({ base: state.base === "rest" ? null : "rest" });
    }

    // width is of the columns; the graph below begins at the same place.
    get width() { return Math.max(100, $("strip").clientWidth); }

    tickAt(e) {
      const part = Math.max(0, Math.min(0.999999, e.offsetX / this.width));
      return Math.floor(part * this.ranges.ticks);
    }

    // part is the dragged range in whole bars; a click is one.
    part(a, b) {
      const { ticks } = this.ranges, n = this.counts.length || 1;
      const column = (t) => Math.floor(t * n / ticks);
      const from = column(Math.min(a, b)), to = column(Math.max(a, b));
      return [Math.ceil(from * ticks / n), Math.max(Math.ceil(from * ticks / n), Math.ceil((to + 1) * ticks / n) - 1)];
    }

    move(e) {
      const { ranges } = this, tick = this.tickAt(e);
      if (this.dragging) {
        this.to = tick;
        this.draw();
      }
      const part = this.dragging ? this.part(this.from, tick) : this.part(tick, tick);
      showTooltip($("tooltip"), { name: `${this.clock(part[0])} to ${this.clock(part[1] + 1)}`, lines: [],
        numbers: quantity(countIn(ranges, this.app.timeMask(), [part]), "samples") }, "transparent", e);
    }

    release() {
      if (!this.dragging) return;
      const which = this.dragging, part = this.part(this.from, this.to);
      this.dragging = null;
      showTooltip($("tooltip"), null);
      this.choose(which, part);
    }

    choose(which, part) {
      const { state } = this.app;
      this.mode = "range";
      if (which === "base" && state.range) this.app.chooseRange({ base: part });
      else this.app.chooseRange({ range: part, base: state.base === "rest" ? "rest" : null });
    }

    key(e) {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key], n = this.counts.length;
      if (!step) return;
      const { ticks } = this.ranges, which = this.mode;
      const clamp = (c) => Math.max(0, Math.min(n - 1, c));
      this.column = clamp((this.column ?? (step > 0 ? -1 : n)) + step);
      if (!e.shiftKey) this.anchor = this.column;
      const tick = (c) => Math.floor((c + 0.5) * ticks / n);
      const part = this.part(tick(this.anchor ?? this.column), tick(this.column));
      this.choose(which, part);
      this.mode = which;
      this.showText();
      e.preventDefault();
      e.stopPropagation();
    }

    // clock is a time since the first sample.
    clock(tick) {
      const all = this.ranges.ticks * this.ranges.tick / 1e9;
      return secondsText(tick * this.ranges.tick / 1e9, all / 1e4);
    }

    // option selects the samples of a part in other commands.
    option([from, to]) {
      const { start, tick } = this.ranges, at = (t) => BigInt(start) + BigInt(t) * BigInt(tick);
      return timeOption(at(from), at(to + 1) - 1n);
    }

    parts(range) { return range === "rest" ? rest(this.ranges, this.app.state.range) : [range]; }

    // render shows the state.
    render() {
      this.counts = [];
      this.draw();
      this.showText();
      if (!$("panel-time").hidden) this.showMaps();
    }

    showText() {
      const { state, model } = this.app, { ranges } = this, mask = this.app.timeMask();
      const whole = countIn(ranges, mask, [[0, ranges.ticks - 1]]), text = $("range-text");
      const words = (part) => `${this.clock(part[0])} to ${this.clock(part[1] + 1)}`;
      const parts = [];
      if (!state.range) parts.push("drag over the time to choose a range of it");
      else {
        const n = countIn(ranges, mask, [state.range]);
        parts.push(make("b", null, words(state.range)), `, ${quantity(n, "samples")} ` +
          `(${percent(n, whole)})`);
        if (state.base) {
          parts.push(" against ", make("b", null, state.base === "rest" ? "the rest" : words(state.base)),
            `, ${quantity(countIn(ranges, mask, this.parts(state.base)), "samples")}, at equal totals`);
        }
        if (ranges.counted) parts.push("; the stacks of ranges have no space in this page: ");
      }
      if (this.mode === "base") parts.push("; drag the range to compare with");
      text.replaceChildren(...parts);
      $("range-option").hidden = !state.range;
      if (state.range) {
        const captures = model.about.find((f) => f.name === "captures")?.text || "CAPTURE";
        $("range-option").textContent = ranges.counted
          ? `symbolize flamegraph ${this.option(state.range)} -o range.html ${quoted(captures)}`
          : this.option(state.range);
      }
      for (const id of ["compare-rest", "compare-range"]) $(id).hidden = !state.range || !!ranges.counted;
      $("range-clear").hidden = !state.range;
      $("compare-rest").setAttribute("aria-pressed", state.base === "rest");
      $("compare-range").setAttribute("aria-pressed", this.mode === "base" || Array.isArray(state.base));
    }

    draw() {
      const { ranges, width } = this, high = $("strip").clientHeight, { state, dark } = this.app;
      const n = Math.max(1, Math.min(ranges.ticks, Math.floor(width / bar)));
      if (this.counts.length !== n) this.counts = histogram(ranges, this.app.timeMask(), n);
      const ratio = root.devicePixelRatio || 1, c = this.canvas, g = c.getContext("2d");
      c.width = Math.round(width * ratio);
      c.height = Math.round(high * ratio);
      c.style.width = `${width}px`;
      c.style.height = `${high}px`;
      g.setTransform(ratio, 0, 0, ratio, 0, 0);
      const most = this.counts.reduce((a, b) => Math.max(a, b), 0), floor = high - axis, w = width / n;
      const shown = this.dragging ? this.part(this.from, this.to) : null;
      const range = this.dragging === "range" ? shown : state.range;
      const base = this.dragging === "base" ? shown : Array.isArray(state.base) ? state.base : null;
      const style = getComputedStyle(document.documentElement), colour = (v) => style.getPropertyValue(v);
      const x = (tick) => tick * width / ranges.ticks;
      const shade = (part, fill) => {
        if (!part) return;
        g.fillStyle = fill;
        g.fillRect(x(part[0]), 0, Math.max(1, x(part[1] + 1) - x(part[0])), floor);
      };
      shade(range, dark ? "rgb(106 160 255 / 28%)" : "rgb(42 99 200 / 16%)");
      shade(base, dark ? "rgb(168 116 27 / 38%)" : "rgb(243 185 90 / 34%)");
      const within = (part, at) => part && at >= part[0] && at <= part[1];
      for (let i = 0; i < n; i++) {
        const h = most > 0 ? this.counts[i] / most * (floor - 3) : 0, at = Math.ceil(i * ranges.ticks / n);
        g.fillStyle = within(range, at) ? colour("--accent")
          : within(base, at) || (state.base === "rest" && range) ? (dark ? "#d19a3c" : "#c98a1b")
          : range ? (dark ? "#5a6170" : "#b9bec9") : (dark ? "#8a93a5" : "#8f97a6");
        if (this.counts[i] > 0) g.fillRect(i * w, floor - Math.max(1, h), Math.max(w - 0.6, 0.5), Math.max(1, h));
      }
      this.drawAxis(g, floor, colour("--faint"));
    }

    drawAxis(g, floor, colour) {
      const { width, ranges } = this, all = ranges.ticks * ranges.tick / 1e9;
      g.fillStyle = colour;
      g.font = "11px system-ui, 'DejaVu Sans', sans-serif";
      g.textBaseline = "middle";
      const { step, list } = ticksOf(all, width / 80);
      for (const s of list) {
        const at = s / all * width, t = secondsText(s, step), w = g.measureText(t).width;
        if (at + w / 2 > width) break;
        g.fillRect(at, floor, 1, 4);
        g.fillText(t, s === 0 ? 0 : at - w / 2, floor + axis / 2 + 2);
      }
    }

    // showMaps shows the heat map and the timeline; they are made when they are first seen.
    showMaps() {
      const { ranges, app } = this, place = $("panel-time"), mask = app.timeMask();
      const key = `${app.state.event} ${JSON.stringify(app.state.chosen)}`;
      if (this.mapsKey === key) return;
      this.mapsKey = key;
      const { heat, rows, rows_by: by, view } = app.model;
      const grid = rows || this.threadGrid(mask);
      if (grid) grid.bpf_programs = heat?.bpf_programs;
      const grids = [[`samples by ${by || "thread, heaviest first"}` +
        (grid?.bpf_programs ? "; bars show when BPF programs were loaded" : ""), grid],
      ["samples by time, and by the part of a column", heat && { ...heat, bpf_programs: null }]];
      if (view === "heat map") grids.reverse();
      const parts = [];
      this.maps = [];
      for (const [text, grid] of grids) {
        if (!grid || grid.total === 0) continue;
        const map = make("div", { class: grid.rows.length ? "heat rows" : "heat" });
        parts.push(make("p", { class: "note" }, text), map);
        this.maps.push([map, grid]);
      }
      place.replaceChildren(...parts);
      this.maps = this.maps.map(([map, grid]) => new Heat(map, grid, {
        dark: () => app.dark,
        show: (text, e) => showTooltip($("tooltip"), text && { name: text, lines: [], numbers: "" },
          "transparent", e),
        chosen: (a, b, e) => this.chooseNs(rangeOf(grid, a, b), e),
      }));
    }

    chooseNs([from, to], e) {
      const { start, tick, ticks } = this.ranges;
      const at = (ns) => Math.max(0, Math.min(ticks - 1, Number((ns - BigInt(start)) / BigInt(tick))));
      this.choose(e?.shiftKey && e.type === "pointerup" ? "base" : this.mode, [at(from), at(to)]);
    }

    threadGrid(mask) {
      const { ranges } = this;
      if (ranges.counted) return null;
      const names = ranges.threads.map((t) => (t.tid < 0 ? t.name : `${t.name} ${t.tid}`));
      return gridOf(ranges, mask, mostColumns, names, (t) => t);
    }
  }

  root.symbolizeTimes = { TimePanel, rangesOf, quoted };
})(globalThis);
