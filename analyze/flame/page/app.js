// The page: its state, what changes it, and what is drawn then. The state that a reader may want
// to come back to is in the address, so that the browser's back button works.
(function (root) {
  "use strict";

  const { decode, weigh, selectColumns, compileSearch, matchFrames, matchedWeight,
    sandwich, focused, without, selectedWeight, mainStates } = root.symbolizeModel;
  const { quantity, percent, cutMiddle, states, stateNumber } = root.symbolizeFormat;
  const { weighBoth, pair, scalingOf } = root.symbolizeCompare;
  const { decodeRanges, weighRange, countIn } = root.symbolizeRanges;
  const { StackView } = root.symbolizeStacks;
  const { FrameMenu, MiniMap } = root.symbolizeMenu;
  const { make, TopPanel, showMissing, showAbout, showCoverage, showLegend, describe,
    showTooltip } = root.symbolizePanels;
  const { Graph } = root.symbolizeGraph;
  const { colourings, firstState, toHash, fromHash } = root.symbolizeAddress;
  const { CodePanel } = root.symbolizeCode;
  const { showTables, showGone } = root.symbolizeExtras;
  const { TimePanel, rangesOf } = root.symbolizeTimes;

  const tabs = ["top", "gone", "code", "time", "missing", "about"];

  const $ = (id) => document.getElementById(id);

  // unpack inflates the data in the page.
  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(stream).json();
  }

  class App {
    constructor(model) {
      this.model = model;
      this.state = firstState(model);
      this.steps = 0;
      const events = {
        hover: (g, n, e) => this.hover(g, n, e),
        choose: (g, n, e) => (e.ctrlKey || e.metaKey ? this.pick(g, n) : this.choose(g, n)),
        menu: (g, n, e) => this.menu.open(g, n, e.clientX, e.clientY),
      };
      this.graph = new Graph($("scroller"), events);
      this.callers = new Graph($("callers"), events);
      this.callees = new Graph($("callees"), events);
      this.menu = new FrameMenu(this);
      this.map = new MiniMap($("minimap"), this);
      this.picked = new Set();
      this.top = new TopPanel($("panel-top"), this);
      this.theme = root.matchMedia("(prefers-color-scheme: dark)").matches;
      this.build();
      this.listen();
      this.readAddress();
      this.setTheme(this.theme);
    }

    build() {
      const { model } = this;
      model.events.forEach((e, i) => $("event").append(make("option", { value: i }, e.name)));
      $("event-label").hidden = model.events.length < 2 || model.differential;
      model.labels.forEach((l, i) => {
        const select = make("select", { "data-label": i }, make("option", { value: "" }, "all"));
        l.values.forEach((v, k) => select.append(make("option", { value: k }, cutMiddle(v, 60))));
        const shared = model.columns.some((c) => c.values[i] < 0);
        if (shared) select.append(make("option", { value: -1 }, "others"));
        select.addEventListener("change", () => this.chooseLabel(i, select.value));
        if (l.values.length > 1 || shared) $("choosers").append(make("label", null, `${l.name} `, select));
      });
      this.buildTitle();
      showCoverage($("coverage"), model);
      showMissing($("panel-missing"), model);
      showAbout($("panel-about"), model);
      const { length } = model.coverage.missing;
      if (length > 0) $("tab-missing").textContent = `Missing (${length})`;
      $("tab-code").hidden = $("code").textContent.trim() === "";
      tabs.push(...showTables(model));
      this.openTab("top");
    }

    // buildTitle writes the line below the title: of a differential page, both sides.
    buildTitle() {
      const { about } = this.model;
      const facts = (...names) => names.flatMap((n) => about.find((f) => f.name === n) || []);
      document.body.classList.toggle("both", this.model.differential);
      if (this.model.differential) {
        const lines = facts("base", "new", "scale", "named").map((f) => make("p", null, `${f.name}: ${f.text}`));
        const details = make("details", null, make("summary", null, "both sides: hosts, times, build IDs"), ...lines);
        details.open = root.innerWidth > 900;
        $("subtitle").replaceWith(details);
        return;
      }
      $("subtitle").textContent =
        facts("host", "kernel", "began", "duration", "command").map((f) => f.text).join("  ·  ");
    }

    listen() {
      $("event").addEventListener("change", () =>
        this.go({ event: Number($("event").value), chosen: {}, zoomed: 0 }));
      $("flame").addEventListener("click", () => this.go({ down: false, overTime: false }));
      $("icicle").addEventListener("click", () => this.go({ down: true, overTime: false }));
      $("over-time").addEventListener("click", () => this.toggleOverTime());
      $("reverse").addEventListener("click", () => this.toggleReverse());
      $("colour").addEventListener("change", () => this.go({ colour: $("colour").value }));
      $("search").addEventListener("input", () => {
        clearTimeout(this.typing);
        this.typing = setTimeout(() => this.go({ search: $("search").value, marked: -1 }, true), 120);
      });
      $("back").addEventListener("click", () => this.back());
      $("reset").addEventListener("click", () => this.reset());
      $("theme").addEventListener("click", () => this.setTheme(!this.dark));
      $("help-button").addEventListener("click", () => $("help").showModal());
      for (const t of tabs) $(`tab-${t}`).addEventListener("click", () => this.openTab(t));
      $("tab-code").addEventListener("click", () => this.loadCode());
      document.addEventListener("keydown", (e) => this.key(e));
      root.addEventListener("hashchange", () => this.readAddress());
      new ResizeObserver(() => this.resize()).observe($("scroller"));
      new ResizeObserver(() => this.resize()).observe($("callers"));
      root.addEventListener("beforeprint", () => this.paper(true));
      root.addEventListener("afterprint", () => this.paper(false));
    }

    resize() {
      for (const g of [this.graph, this.callers, this.callees]) g.resize();
      if (this.tree && !this.state.overTime) this.map.show(this.tree, this.weights, this.state.zoomed);
    }

    paper(on) {
      const dark = this.dark;
      if (on && dark) this.setTheme(false);
      if (!on && this.darkScreen) this.setTheme(true);
      this.darkScreen = on && dark;
      for (const g of [this.graph, this.callers, this.callees]) {
        if (g.shown && g.scroller.clientWidth > 0) (on ? g.paper() : g.screen());
      }
    }

    // addRanges shows the times of the samples, which the page unpacks after its first frame.
    addRanges(data) {
      const { model } = this;
      model.ranges = data ? decodeRanges(data) : model.heat?.total > 0 ? rangesOf(model.heat) : null;
      if (!model.ranges) {
        const why = model.about.find((f) => f.name === "times");
        $("times").hidden = !why;
        $("strip").hidden = true;
        $("range-text").textContent = why ? `no times in this page: ${why.text}` : "";
        return;
      }
      $("tab-time").hidden = false;
      this.times = new TimePanel(this, model.ranges);
      if (!model.ranges.counted) {
        $("over-time").hidden = false;
        this.stacks = new StackView($("stacks"), this);
      }
      this.readAddress();
      if (model.view) {
        this.openTab("time");
        this.times.showMaps();
      }
    }

    // timeMask is the mask of the columns that the strip of time counts.
    timeMask() { return this.model.ranges.counted ? [1] : this.mask; }

    // chooseRange changes the range or its base. The colours follow.
    chooseRange(change) {
      const base = "base" in change ? change.base : this.state.base;
      const colour = !base === !this.state.base ? this.state.colour : colourings(this.model, base)[0];
      this.go({ colour, ...change });
    }

    // go changes the state; instead replaces the current step of the browser's history.
    go(change, instead) {
      Object.assign(this.state, change);
      this.render();
      this.writeAddress(instead);
    }

    writeAddress(instead) {
      const hash = toHash(this.state, this.model);
      if (hash === (root.location.hash || "#")) return;
      if (instead) root.history.replaceState(null, "", hash);
      else {
        this.steps++;
        root.history.pushState(null, "", hash);
      }
    }

    readAddress() {
      this.state = fromHash(root.location.hash, this.model);
      this.render();
    }

    back() {
      if (this.steps > 0) {
        this.steps--;
        root.history.back();
      } else this.reset();
    }

    reset() {
      $("search").value = "";
      this.picked.clear();
      this.go({ zoomed: 0, focus: -1, hidden: [], search: "", sandwich: -1, marked: -1, chosen: {}, range: null,
        base: null, colour: colourings(this.model)[0] });
    }

    toggleOverTime() {
      if (this.stacks) this.go({ overTime: !this.state.overTime, sandwich: -1 });
    }

    toggleReverse() {
      this.go({ reverse: !this.state.reverse, zoomed: 0, sandwich: -1, overTime: false });
    }

    chooseLabel(label, value) {
      const chosen = Object.assign({}, this.state.chosen);
      if (value === "") delete chosen[label];
      else chosen[label] = Number(value);
      this.go({ chosen });
    }

    choose(graph, node) {
      showTooltip($("tooltip"), null);
      if (graph === this.graph) this.go({ zoomed: node });
      else this.openSandwich(graph.shown.tree.frame[node]);
    }

    openSandwich(frame) {
      showTooltip($("tooltip"), null);
      if (frame >= 0) this.go({ sandwich: frame });
    }

    // focusOn shows the stacks with a function; hide shows all without its frames.
    focusOn(frame) { this.go({ focus: frame, sandwich: -1, zoomed: 0 }); }

    hide(frame) {
      this.go({ hidden: [...new Set([...this.state.hidden, frame])], sandwich: -1, zoomed: 0 });
    }

    // loadCode unpacks the code when it is first needed.
    async loadCode() {
      if ($("tab-code").hidden) return null;
      this.unpackedCode ||= unpack($("code").textContent).then((data) => new CodePanel(this, data));
      if (!this.code) {
        this.code = await this.unpackedCode;
        this.top.draw(); // its rows lead to their code
      }
      return this.code;
    }

    // hasCode reports whether the page may have the code of a function.
    hasCode(frame) {
      return !$("tab-code").hidden && (!this.code || this.code.has(frame));
    }

    // openCode shows the code of a function.
    async openCode(frame) {
      const code = await this.loadCode();
      if (!code) return;
      if (!code.has(frame)) {
        this.say(`the page has no code of ${this.model.frames.name[frame]}: symbolize annotate shows it`);
        return;
      }
      this.openTab("code"); // what is hidden does not scroll
      code.open(frame);
    }

    // pick adds a frame to the selected ones, or takes it away.
    pick(graph, node) {
      if (graph !== this.graph || node <= 0) return;
      if (!this.picked.delete(node)) this.picked.add(node);
      this.graph.draw();
      this.say();
    }

    // say shows a text in the line below the graph; without one, what is selected.
    say(text) {
      if (!text && this.picked.size > 0) {
        const v = selectedWeight(this.tree, this.weights.cum, this.picked);
        text = `${this.picked.size} selected, ${percent(v, this.total)}, ${quantity(v, this.unit)}`;
      }
      if (text) $("status").replaceChildren(make("b", null, cutMiddle(text, 300)));
      else this.showStatus(null);
    }

    openTab(name) {
      document.querySelector("aside").classList.toggle("wide",
        name === "code" || name === "time" || name.startsWith("table"));
      for (const t of tabs) {
        $(`tab-${t}`).setAttribute("aria-selected", t === name);
        $(`panel-${t}`).hidden = t !== name;
      }
    }

    setTheme(dark) {
      this.dark = dark;
      document.documentElement.dataset.theme = dark ? "dark" : "light";
      $("theme").textContent = dark ? "Light" : "Dark";
      this.render();
      this.times?.maps.forEach((m) => m.draw());
    }

    // view is a tree with its weights for what is chosen.
    view(which) {
      return this.views[which] ||= this.newView(which);
    }

    newView(which) {
      const { focus, hidden } = this.state, tree = this.model[which];
      let weights = this.sums(which);
      if (focus >= 0) weights = focused(tree, weights, focus);
      return hidden.length > 0 ? without(tree, weights, hidden) : { tree, weights };
    }

    sums(which) {
      const { model } = this;
      if (model.differential) return weighBoth(model, model[which]);
      if (!this.parts) return weigh(model[which], this.mask);
      const part = (p) => weighRange(model, model.ranges, this.mask, p, which === "reverse");
      const now = part(this.parts.now);
      return this.parts.base ? pair(model, now, part(this.parts.base)) : now;
    }

    // chooseParts sets the parts of the recording that are shown, and how they compare; null for
    // all of it.
    chooseParts() {
      const { model, state } = this;
      this.parts = null;
      if (model.differential) return;
      model.scaling = null;
      if (!state.range || model.ranges.counted) return;
      this.parts = { now: [state.range] };
      if (!state.base) return;
      const side = (p) => ({ total: weighRange(model, model.ranges, this.mask, p, false).cum[0],
        samples: countIn(model.ranges, this.mask, p), unit: this.unit });
      const base = this.times.parts(state.base);
      model.scaling = scalingOf(side(this.parts.now), side(base), [0.1, 1, 5]);
      this.parts.base = base;
    }

    nextColour() {
      const all = colourings(this.model, this.state.base);
      this.go({ colour: all[(all.indexOf(this.state.colour) + 1) % all.length] });
    }

    // render brings the document to the state.
    render() {
      const { state, model } = this;
      const columns = JSON.stringify([state.event, state.chosen, state.range, state.base, state.focus,
        state.hidden]);
      if (this.columns !== columns) {
        this.columns = columns;
        this.mask = selectColumns(model, state.event, state.chosen);
        this.unit = model.events[state.event]?.unit || "";
        this.views = {};
        this.chooseParts();
        this.columnsChanged = true;
      }
      const which = state.reverse ? "reverse" : "forward";
      const old = this.tree;
      ({ tree: this.tree, weights: this.weights } = this.view(which));
      if (old !== this.tree) this.picked.clear();
      this.total = this.weights.cum[0];
      if (!(this.weights.cum[state.zoomed] > 0)) state.zoomed = 0;
      this.search();
      this.renderGraphs();
      this.renderControls();
      if (this.columnsChanged) this.showTables();
      else this.top.draw();
      this.columnsChanged = false;
      this.times?.render();
      if (this.codeColumns !== this.columns) this.code?.weigh();
      this.codeColumns = this.columns;
    }

    // showTables shows what depends on the chosen columns alone.
    showTables() {
      this.top.show();
      $("tab-gone").hidden = !this.model.scaling;
      const { tree, weights } = this.view("forward");
      if (this.model.scaling) showGone(this.model, tree, weights);
      else if (!$("panel-gone").hidden) this.openTab("top");
    }

    search() {
      const { state, model } = this;
      const key = JSON.stringify([state.search, state.marked]);
      if (this.searched !== key) {
        this.searched = key;
        this.searching = state.search !== "" || state.marked >= 0;
        this.hit = matchFrames(model, compileSearch(state.search));
        if (state.marked >= 0) this.hit = this.hit.fill(0).fill(1, state.marked, state.marked + 1);
      }
      const matched = this.searching
        ? matchedWeight(this.tree, this.weights.cum, this.hit, state.zoomed) : 0;
      const all = this.weights.cum[state.zoomed];
      $("matched").textContent = this.searching
        ? `${this.weights.allLeft > all * 1e-4 ? "≥ " : ""}${percent(matched, all)} matched` : "";
      $("matched").title = this.searching ? `${quantity(matched, this.unit)}, as with --focus; an upper-case ` +
        "letter makes a search exact, as --focus is" : "";
    }

    // allText is the text of the root.
    allText() {
      const e = this.model.events[this.state.event];
      const { focus } = this.state;
      const of = (this.parts ? "all of the range" : "all") +
        (focus >= 0 ? ` with ${cutMiddle(this.model.frames.name[focus], 60)}` : "");
      const scale = this.parts?.base ? this.model.scaling.scale : 1; // for equal totals
      return e ? `${of}: ${e.name}, ${quantity(this.total / scale, e.unit)}` : "all";
    }

    // states returns the main states of the nodes and frames of a tree; of a tree that was made of
    // another, of the frames.
    states(tree) {
      const { model, mask } = this, whole = tree === model.reverse ? tree : model.forward;
      if (this.statesMask !== mask) this.statesOf = new Map();
      this.statesMask = mask;
      if (!this.statesOf.has(whole)) {
        this.statesOf.set(whole, mainStates(model, whole, mask, states.length, stateNumber));
      }
      const of = this.statesOf.get(whole);
      return tree === whole ? of : { frames: of.frames, sums: of.sums };
    }

    shownIn(tree, weights, zoomed, down, first) {
      const { model, hit, state, dark } = this;
      const states = state.colour === "state" ? this.states(tree) : null;
      return { model, tree, weights, zoomed, down, first, colour: state.colour, dark, hit, states,
        searching: this.searching, all: this.allText(), picked: this.picked };
    }

    renderGraphs() {
      const { state } = this, both = state.sandwich >= 0, ordered = state.overTime && !both;
      $("scroller").hidden = both || ordered;
      $("stacks").hidden = !ordered;
      $("sandwich").hidden = !both;
      $("minimap").hidden = both || ordered;
      if (ordered) {
        this.stacks.show();
        return;
      }
      if (!both) {
        this.graph.show(this.shownIn(this.tree, this.weights, state.zoomed, state.down, 0));
        this.map.show(this.tree, this.weights, state.zoomed);
        return;
      }
      const forward = this.view("forward");
      const key = `${this.columns} ${state.sandwich}`;
      if (this.sandwichKey !== key) {
        this.sandwichKey = key;
        this.two = sandwich(forward.tree, forward.weights, state.sandwich);
      }
      const { callers, callees } = this.two;
      this.callers.show(this.shownIn(callers.tree, callers.weights, 0, false, 1));
      this.callees.show(this.shownIn(callees.tree, callees.weights, 0, true, 1));
    }

    renderControls() {
      const { state, model } = this;
      $("event").value = state.event;
      for (const s of $("choosers").querySelectorAll("select")) {
        s.value = state.chosen[s.dataset.label] ?? "";
      }
      $("flame").setAttribute("aria-pressed", !state.down && !state.overTime);
      $("icicle").setAttribute("aria-pressed", state.down && !state.overTime);
      $("over-time").setAttribute("aria-pressed", state.overTime);
      $("reverse").setAttribute("aria-pressed", state.reverse);
      const colours = colourings(model, state.base);
      if ($("colour").options.length !== colours.length) {
        $("colour").replaceChildren(...colours.map((c) => make("option", { value: c }, c)));
      }
      $("colour").value = state.colour;
      if (document.activeElement !== $("search")) $("search").value = state.search;
      $("back").disabled = this.steps === 0;
      showLegend($("legend"), this);
      this.renderCrumbs();
      this.showStatus(null);
      const e = model.events[state.event];
      document.title = `${e ? `${e.name}: ` : ""}${model.title}`;
    }

    // renderCrumbs shows the way from the root to the zoomed frame, or whose sandwich it is.
    renderCrumbs() {
      const { state, model, tree } = this, parts = [], first = (state.focus >= 0) + state.hidden.length;
      const add = (text, f) => {
        if (parts.length > first) parts.push(make("span", null, "›"));
        parts.push(make("button", { onclick: f, title: cutMiddle(text, 300) }, cutMiddle(text, 40)));
      };
      const chip = (text, change) => parts.push(make("button", { class: "chip", "aria-label": `end: ${text}`,
        title: "a click ends it", onclick: () => this.go(change) }, `${cutMiddle(text, 40)} ×`));
      if (state.focus >= 0) chip(`focus: ${model.frames.name[state.focus]}`, { focus: -1, zoomed: 0 });
      for (const f of state.hidden) {
        chip(`hidden: ${model.frames.name[f]}`, { hidden: state.hidden.filter((h) => h !== f), zoomed: 0 });
      }
      add("all", () => this.go({ zoomed: 0, sandwich: -1 }));
      if (state.sandwich >= 0) {
        add(`callers and callees of ${model.frames.name[state.sandwich]}`, () => {});
        const c = this.two.callees.weights.cum[0], has = this.exactCum(state.sandwich);
        if (c === 0) parts.push(make("span", { class: "dim" }, "gone: only the base has it"));
        if (has > c * 1.00005) {
          parts.push(make("span", { class: "dim" },
            `shown are ${percent(c, has)} of its ${quantity(has, this.unit)}; ` +
            "the rest is too light for this page"));
        }
      } else {
        const path = [];
        for (let i = state.zoomed; i > 0; i = tree.parent[i]) path.unshift(i);
        for (const i of path) add(model.frames.name[tree.frame[i]], () => this.go({ zoomed: i }));
      }
      $("crumbs").replaceChildren(...parts);
      $("crumbs").scrollLeft = $("crumbs").scrollWidth;
    }

    // exactCum is the cumulative value of a function in the table, which nothing is left out of.
    exactCum(frame) {
      return this.top.rows?.find((r) => r.frame === frame)?.cum || 0;
    }

    hover(graph, node, e) {
      if (node < 0) {
        showTooltip($("tooltip"), null);
        this.say();
        return;
      }
      const facts = describe(this, graph.shown.tree, graph.shown.weights, node);
      showTooltip($("tooltip"), facts, graph.colour(node, graph.shown.tree.frame[node]), e);
      this.showStatus(facts);
    }

    showStatus(facts) {
      $("status").replaceChildren(...(facts
        ? [make("b", null, cutMiddle(facts.name, 200)), ` ${facts.numbers} `,
          make("span", { class: "dim" }, facts.lines.join(" · "))]
        : [make("span", { class: "dim" }, this.state.overTime
          ? "wheel: zoom, drag: move, Shift and wheel: scroll; click a thread to hide it, a frame to mark its function"
          : "click a frame to zoom, right click for its menu, Ctrl and click to add up, ? for the keys")]));
    }

    // key obeys the keyboard, but for keys that a field or dialog needs.
    key(e) {
      if (e.ctrlKey || e.metaKey || e.altKey || $("help").open) return;
      if (/^Arrow/.test(e.key) && e.target.closest?.(".heat, .strip, .stacks")) return;
      const field = /^(INPUT|SELECT)$/.test(e.target.tagName);
      if (e.key === "Escape") {
        if (field) e.target.blur();
        this.reset();
        return;
      }
      if (field) return;
      const graph = this.state.sandwich >= 0 ? this.callees : this.graph;
      const node = graph.selected >= 0 ? graph.selected
        : graph.hover >= 0 ? graph.hover : graph === this.graph ? this.state.zoomed : -1;
      const frame = node >= 0 ? graph.shown.tree.frame[node] : -1;
      const actions = {
        "/": () => $("search").focus(), "?": () => $("help").showModal(),
        r: () => this.toggleReverse(), i: () => this.go({ down: !this.state.down }),
        v: () => this.toggleOverTime(), c: () => this.nextColour(), b: () => this.times?.compareRest(),
        t: () => this.setTheme(!this.dark), Backspace: () => this.back(),
        m: () => this.openMenu(graph, node), ContextMenu: () => this.openMenu(graph, node),
      };
      const button = /^(BUTTON|SUMMARY|A)$/.test(e.target.tagName);
      if (/^Arrow/.test(e.key)) {
        this.step(graph, graph.neighbour(e.key));
      } else if (e.key === "Enter" && graph.selected >= 0 && !button) {
        this.choose(graph, graph.selected);
      } else if (e.key === " " && graph.selected >= 0 && !button) {
        this.pick(graph, graph.selected);
      } else if (actions[e.key]) {
        actions[e.key]();
      } else if (!this.menu.run(e.key, frame)) return;
      e.preventDefault();
    }

    // openMenu opens the menu of a node beside its box.
    openMenu(graph, node) {
      const box = graph.boxes.find((b) => b.node === node && !b.thin);
      if (!box) return;
      const r = graph.canvas.getBoundingClientRect();
      this.menu.open(graph, node, r.left + box.x + 12, r.top + graph.y(box.row) - graph.top + 12);
    }

    step(graph, node) {
      graph.select(node);
      this.showStatus(describe(this, graph.shown.tree, graph.shown.weights, node));
    }
  }

  async function start() {
    try {
      root.symbolizeApp = new App(decode(await unpack($("data").textContent)));
      document.documentElement.dataset.ready = "1";
      root.symbolizeApp.firstFrame = root.performance.now();
      const ranges = $("ranges").textContent.trim();
      await new Promise((next) => setTimeout(next));
      root.symbolizeApp.addRanges(ranges && await unpack(ranges));
      document.documentElement.dataset.times = "1";
      await root.symbolizeApp.loadCode();
    } catch (err) {
      $("scroller").append(make("p", { class: "failure" }, `the page cannot be shown: ${err}`));
    }
  }

  start();
})(globalThis);
