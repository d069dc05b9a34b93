// The panels beside the graph: the table of functions, what is missing, the recording; the
// tooltip and the line below the graph. Texts of the data reach the document as text only.
(function (root) {
  "use strict";

  const { table, sortRows } = root.symbolizeModel;
  const { tableOf } = root.symbolizeRanges;
  const { quantity, thousands, percent, cutMiddle, shortName, scopeEnd, baseName, kinds, inlinedKind,
    kindColour, states, stateColour } = root.symbolizeFormat;
  const { compareTable, changeStep, changeColour, signed, status, points,
    compareText, testText } = root.symbolizeCompare;

  const firstRows = 150;

  // make creates an element with attributes, and children that are texts or elements.
  function make(tag, attributes, ...children) {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attributes || {})) {
      if (k === "class") e.className = v;
      else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
      else e.setAttribute(k, v);
    }
    e.append(...children);
    return e;
  }

  // nameParts are a name and the file of its object, for a cell in which scopes are cut first.
  function nameParts(name, path) {
    const text = cutMiddle(shortName(name), 120), end = scopeEnd(text);
    return make("span", { class: "fit" }, make("span", { class: "scope" }, text.slice(0, end)),
      make("span", null, text.slice(end)), ...(path ? [make("small", null, `  ${baseName(path)}`)] : []));
  }

  const headings = [["flat", "self"], ["cum", "total"], ["name", "function"]];
  const compareHeadings = [["flatChange", "self ±"], ["flat", "new"], ["baseFlat", "base"],
    ["cumChange", "total ±"], ["cum", "new"], ["baseCum", "base"], ["name", "function"]];

  // TopPanel is the table of functions, which sorts by its headings.
  class TopPanel {
    constructor(place, app) {
      this.place = place;
      this.app = app;
      this.most = firstRows;
    }

    // setSides has the columns for one side or for two.
    setSides(both) {
      if (this.both === both) return;
      this.both = both;
      this.headings = both ? compareHeadings : headings;
      this.sort = this.headings[0][0];
      this.up = both ? "size" : false;
    }

    // show computes the rows of the chosen columns. A search leaves those that match.
    show() {
      const { app } = this, { model, mask } = app, { focus, hidden } = app.state;
      const whole = !app.parts && focus < 0 && hidden.length === 0; // the data have its sums
      this.setSides(!!model.scaling);
      document.querySelector("aside").classList.toggle("both", this.both);
      if (whole) this.rows = this.both ? compareTable(model) : table(model, mask);
      else {
        const { tree, weights } = app.view("forward");
        const rows = (w) => tableOf(tree, w, model.frames.name.length);
        this.rows = this.both ? compareTable(model, rows(weights), rows(weights.base)) : rows(weights);
      }
      this.draw();
    }

    draw() {
      const { model, hit, searching } = this.app;
      let rows = this.rows;
      if (searching) rows = rows.filter((r) => hit[r.frame]);
      sortRows(rows, model.frames.name, this.sort, this.up);
      const body = make("tbody");
      const most = rows.reduce((a, r) => Math.max(a, Math.abs(r[this.bar()])), 0);
      for (const r of rows.slice(0, this.most)) body.append(this.row(r, most));
      const head = make("tr");
      for (const [key, text] of this.headings) head.append(this.heading(key, text));
      head.append(make("th", { class: "act" }));
      const widths = make("colgroup", null, ...this.headings.slice(1).map(() =>
        make("col", { class: "w-number" })), make("col"),
      make("col", { class: this.app.code ? "w-acts" : "w-act" }));
      const parts = [make("table", null, widths, make("thead", null, head), body)];
      if (rows.length > this.most) {
        parts.push(make("button", { class: "more", onclick: () => {
          this.most *= 4;
          this.draw();
        } }, `${thousands(rows.length - this.most)} more functions`));
      }
      if (rows.length === 0) parts.push(make("p", { class: "note" }, "no function"));
      const { tests } = model.scaling || {};
      if (tests) {
        parts.unshift(make("p", { class: "note" }, `medians of ${tests.new} new profiles and ` +
          `${tests.base} of the base; changes that are not significant (p of ${tests.alpha} and ` +
          "more, corrected for the number of functions) are pale and last"));
      } else if (this.both) {
        parts.unshift(make("p", { class: "note" }, "largest changes first; those within twice the noise " +
          "of counting samples are grey and last"));
      }
      if (model.top.left > 0) {
        parts.push(make("p", { class: "note" },
          `${thousands(model.top.left)} light functions are not in this page`));
      }
      this.place.replaceChildren(...parts);
    }

    heading(key, text) {
      const th = make("th", { class: key === "name" ? "name" : "" },
        make("button", { onclick: () => {
          this.up = this.next(key);
          this.sort = key;
          this.draw();
        }, title: key.endsWith("Change") ? "the greatest changes, then what grew, then what shrank" : "" },
        text + (this.sort === key ? { size: " ↕", true: " ▴", false: " ▾" }[this.up] : "")));
      if (this.sort === key) {
        th.setAttribute("aria-sort", this.up === "size" ? "other"
          : (key === "name") === this.up ? "descending" : "ascending");
      }
      return th;
    }

    // next is the order that a click on a heading chooses: changes go by size, then down, then up.
    next(key) {
      const change = key.endsWith("Change");
      if (this.sort !== key) return change ? "size" : false;
      return this.up === "size" ? false : this.up && change ? "size" : !this.up;
    }

    // bar is the number that has meters: what the table is sorted by.
    bar() {
      return this.sort === "name" ? this.headings[0][0] : this.sort;
    }

    // number is a cell of the table.
    number(r, key, most) {
      const { model, unit, total } = this.app, v = r[key], isChange = key.endsWith("Change");
      const meter = make("span", { class: "meter" });
      meter.style.width = `${most > 0 ? 100 * Math.abs(v) / most : 0}%`;
      let text = percent(v, total), title = quantity(v, unit), kindOfCell = "";
      if (isChange) {
        text = signed(v) + (model.scaling.raw ? "%" : " pt");
        const kind = key.slice(0, -"Change".length), told = testText(model, r.frame, kind);
        title = signed(v) + points(model) + (told ? `; ${told}` : "");
        if (r[`${kind}Noise`]) kindOfCell = "untold";
        meter.style.background = changeColour(changeStep(model, v), this.app.dark);
      } else if (this.both) {
        text = key.startsWith("base") ? percent(v, model.scaling.sides[1].total)
          : percent(v, model.scaling.sides[0].total * model.scaling.scale);
      }
      return make("td", { title, class: kindOfCell }, text, ...(key === this.bar() ? [meter] : []));
    }

    row(r, most) {
      const { model, state } = this.app;
      const name = model.frames.name[r.frame], object = model.frames.object[r.frame];
      const parts = nameParts(name, object >= 0 && model.frames.kind[r.frame] !== 5
        ? model.objects[object].path : "");
      if (this.both && status(r.cum, r.baseCum)) {
        parts.prepend(make("em", null, `${status(r.cum, r.baseCum)} `));
      }
      const td = make("td", { class: "name", title: cutMiddle(name, 300) }, parts);
      const sandwich = make("button", { title: "callers and callees (s)", "aria-label":
        `callers and callees of ${cutMiddle(name, 80)}`, onclick: (e) => {
        e.stopPropagation();
        this.app.go({ sandwich: r.frame });
      } }, "⇅");
      const act = make("td", { class: "act" }, sandwich);
      if (this.app.code?.has(r.frame)) {
        act.prepend(make("button", { title: "source and code (o)", "aria-label":
          `source and code of ${cutMiddle(name, 80)}`, onclick: (e) => {
          e.stopPropagation();
          this.app.openCode(r.frame);
        } }, "{ }"));
      }
      const on = state.marked === r.frame;
      const noise = this.both && r.flatNoise && r.cumNoise ? " noise" : "";
      return make("tr", { class: (on ? "on" : "") + noise, onclick: () =>
        this.app.go({ marked: on ? -1 : r.frame }) },
      ...this.headings.slice(0, -1).map(([key]) => this.number(r, key, most)), td, act);
    }
  }

  // showMissing lists what has no names, with the command that fixes it.
  function showMissing(place, model) {
    const c = model.coverage;
    const parts = [];
    if (c.missing.length === 0) {
      parts.push(make("p", null, `Nothing is missing: ${thousands(c.frames)} frames, all named.`));
    } else {
      parts.push(make("p", { class: "note" }, `${share(c.named_samples_percent)} of the samples are ` +
        `named by their innermost frame, ${share(c.named_frames_percent)} of the frames have a name. ` +
        "The rest by the samples that end there:"));
    }
    const rows = [...c.missing].sort((a, b) => b.samples - a.samples || b.frames - a.frames);
    for (const [i, m] of rows.slice(0, 60).entries()) {
      if (m.samples === 0 && (i === 0 || rows[i - 1].samples > 0)) {
        parts.push(make("p", { class: "note" }, "Only callers are without a name here, no sample ends there:"));
      }
      const first = m.samples > 0 ? quantity(m.samples, "samples") : `${thousands(m.frames)} frames`;
      const div = make("div", { class: "missing" }, make("b", null, first),
        `${m.samples > 0 ? `, ${share(m.samples_percent)}:` : ":"} ${m.object} `,
        make("small", null, `${m.reason}${m.why ? `: ${m.why}` : ""}` +
          `${m.samples > 0 ? `; ${thousands(m.frames)} frames` : ""}${m.build_id ? `, build ID ${m.build_id}` : ""}` +
          (m.found_build_id ? `, the file there is now ${m.found_build_id}` : "")));
      if (m.hint) div.append(make("code", null, m.hint));
      parts.push(div);
    }
    if (c.missing.length > 60) {
      parts.push(make("p", { class: "note" }, `and ${c.missing.length - 60} more: symbolize missing`));
    }
    place.replaceChildren(...parts);
  }

  function share(p) {
    if (p >= 100) return "100%";
    return p > 0 && p < 0.01 ? "<0.01%" : `${p.toFixed(2)}%`;
  }

  // showAbout lists what the recording says of itself, and what the page leaves out.
  function showAbout(place, model) {
    const list = make("dl", { class: "about" });
    const add = (name, ...values) => list.append(make("dt", null, name),
      ...values.map((v) => make("dd", null, v)));
    for (const f of model.about) add(f.name, f.text);
    add("events", ...model.events.map((e) => `${e.name}: ${thousands(e.samples)} samples` +
      (e.unit === "samples" ? "" : `, ${quantity(e.total, e.unit)}`) +
      (e.kept < e.total ? `; ${percent(e.kept, e.total)} passed the filter` : "")));
    const c = model.coverage;
    add("named", `${share(c.named_samples_percent)} of the samples, by their innermost frame`);
    add("frames", `${thousands(c.frames)}, ${share(c.named_frames_percent)} named`,
      ...c.domains.map((d) => `${d.domain}: ${share(d.frames_percent)} of all, ` +
        `${share(d.named_frames_percent)} named`));
    const losses = [[c.lost, "records lost"], [c.throttled, "times throttled"],
      [c.cut_chains, "stacks cut at an invalid address"]].filter((l) => l[0] > 0);
    if (losses.length) add("losses", ...losses.map((l) => `${thousands(l[0])} ${l[1]}`));
    if (model.notes.length) add("left out of this page", ...model.notes);
    if (c.warnings?.length) add("warnings", ...c.warnings);
    place.replaceChildren(list);
  }

  // showCoverage draws how much of each kind of code there is, and how much of it has names.
  function showCoverage(place, model) {
    const c = model.coverage, kindOf = { user: 0, kernel: 1, bpf: 2, jit: 3 };
    const stack = make("div", { class: "stack" });
    const part = (width, colour, title) => {
      const i = make("span", { title });
      i.style.width = `${width}%`;
      i.style.background = colour;
      stack.append(i);
    };
    for (const d of c.domains) {
      const k = kinds[kindOf[d.domain]];
      part(d.samples_percent * d.named_samples_percent / 100, `hsl(${k.h} ${k.s}% ${k.light - 6}%)`,
        `${d.domain}: ${share(d.samples_percent)} of the samples`);
    }
    const unnamed = 100 - c.named_samples_percent;
    part(unnamed, "transparent", `without a name: ${share(unnamed)}`);
    const words = make("div", { class: "words" }, make("span", null,
      make("b", null, share(c.named_samples_percent)),
      ` of ${model.differential ? "the new side's " : ""}samples named`),
    make("span", null, `${thousands(c.samples)} samples`));
    place.replaceChildren(words, stack);
  }

  // showLegend explains the colours.
  function showLegend(place, app) {
    const { model, state, dark, weights, tree } = app;
    const item = (colour, text) => {
      const i = make("i");
      i.style.background = colour;
      return make("span", null, i, text);
    };
    const sums = kinds.map(() => 0);
    for (let n = 1; n < tree.n; n++) {
      if (state.colour !== "kind") break;
      const kind = model.frames.kind[tree.frame[n]];
      const at = tree.inlined[n] && kind !== 5 ? inlinedKind : kind;
      if (at < sums.length) sums[at] += state.reverse
        ? (tree.depth[n] === 1 ? weights.cum[n] : 0) : weights.self[n];
    }
    const parts = [];
    if (state.colour === "kind") {
      kinds.forEach((k, i) => {
        if (sums[i] > 0) {
          parts.push(item(kindColour(i, "", dark), `${k.name} ${percent(sums[i], weights.cum[0])}`));
        }
      });
      parts.push(make("span", { class: "dim" }, "share of samples by the innermost frame"));
    } else if (state.colour === "state") {
      const { sums } = app.states(tree), all = sums.reduce((a, b) => a + b, 0);
      states.forEach((s, i) => {
        if (sums[i] > 0) parts.push(item(stateColour(i, "", dark), `${s.name} ${percent(sums[i], all)}`));
      });
      parts.push(make("span", { class: "dim" }, "a frame has the colour of the state that most of it is in"));
    } else if (state.colour === "change") {
      const { steps } = model.scaling, n = steps.length;
      for (let i = -n; i <= n; i++) {
        parts.push(item(changeColour(i, dark), i === 0 ? `within ±${steps[0]}`
          : `${i < 0 ? "-" : "+"}${steps[Math.abs(i) - 1]}`));
      }
      parts.push(make("span", { class: "dim" }, `change in ${points(model).trim()}: blue shrank, ` +
        "red grew; as wide as on the new side; " + (model.scaling.tests
        ? "functions as a whole are tested, in the table and the tooltips" : "not tested for significance")));
    } else parts.push(make("span", null, "one colour for each object"));
    if (weights.allLeft > 0) {
      parts.push(make("span", null, `frames too light for this page: ` +
        `${percent(weights.allLeft, weights.cum[0])}`));
    }
    place.replaceChildren(...parts);
  }

  // describe gives the facts of a node: name, place, numbers.
  function describe(app, tree, weights, node) {
    const { model, unit, total, state } = app, frame = tree.frame[node];
    const cum = weights.cum[node], zoomed = weights.cum[state.zoomed] || weights.cum[0];
    const flat = state.reverse && state.sandwich < 0
      ? (tree.depth[node] === 1 ? cum : 0) : weights.self[node];
    const lines = [];
    if (frame >= 0) {
      const o = model.frames.object[frame], kind = model.frames.kind[frame];
      const what = [];
      if (o >= 0) {
        what.push(model.objects[o].path + (model.objects[o].id ? ` (${model.objects[o].id.slice(0, 12)})` : ""));
      }
      if (kind < kinds.length) what.push(kinds[kind].name + (tree.inlined[node] ? ", inlined" : ""));
      lines.push(what.join(" · "));
      if (model.frames.file[frame]) lines.push(model.frames.file[frame]);
      if (kind === 5) lines.push(...whyUnresolved(model, o));
    }
    let numbers = `total ${quantity(cum, unit)}, ${percent(cum, total)}`;
    if (zoomed < total * 0.9999) numbers += ` (${percent(cum, zoomed)} of the zoomed)`;
    numbers += ` · self ${quantity(flat, unit)}, ${percent(flat, total)}`;
    if (model.scaling) {
      const base = state.reverse && state.sandwich < 0
        ? (tree.depth[node] === 1 ? weights.base.cum[node] : 0) : weights.base.self[node];
      numbers = `total ${compareText(model, cum, weights.base.cum[node])}`;
      lines.push(`self ${compareText(model, flat, base)}`);
      if (frame >= 0 && model.scaling.tests) {
        lines.push(`all of the function: total, ${testText(model, frame, "cum")}`,
          `self, ${testText(model, frame, "flat")}`);
      }
    }
    const left = weights.left[node];
    const more = left > 0
      ? `of its total, ${percent(left, cum)} is in frames too light for this page` : "";
    return { name: frame < 0 ? app.allText() : model.frames.name[frame], lines, numbers, more, frame };
  }

  // whyUnresolved finds the reason of an object in the list of what is missing.
  function whyUnresolved(model, object) {
    const o = object >= 0 ? model.objects[object] : { path: "", id: "" };
    const m = model.coverage.missing.find((r) =>
      r.object === o.path && (r.build_id || "") === o.id);
    return m ? [`${m.reason}${m.hint ? `: ${m.hint}` : ""}`] : [];
  }

  // showTooltip places the facts of a node beside the pointer.
  function showTooltip(place, facts, colour, e) {
    if (!facts) {
      place.hidden = true;
      return;
    }
    const chip = make("span", { class: "chip" });
    chip.style.background = colour;
    place.replaceChildren(chip, make("b", null, cutMiddle(facts.name, 400)),
      ...facts.lines.map((l) => make("div", null, cutMiddle(l, 300))),
      make("div", { class: "numbers" }, facts.numbers),
      ...(facts.more ? [make("div", null, facts.more)] : []));
    place.hidden = false;
    const box = place.getBoundingClientRect();
    const left = Math.min(e.clientX + 14, root.innerWidth - box.width - 8);
    const below = e.clientY + 18 + box.height < root.innerHeight;
    place.style.left = `${Math.max(8, left)}px`;
    place.style.top = `${Math.max(4, below ? e.clientY + 18 : e.clientY - box.height - 10)}px`;
  }

  root.symbolizePanels = { make, TopPanel, showMissing, showAbout, showCoverage, showLegend,
    describe, showTooltip };
})(globalThis);
