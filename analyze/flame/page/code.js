// The code of the functions of a report: a list, and one function at a time, whose samples follow
// the chosen range of time.
(function (root) {
  "use strict";

  const { make } = root.symbolizePanels;
  const { cutMiddle, percent } = root.symbolizeFormat;
  const { eachIn } = root.symbolizeRanges;

  const $ = (id) => document.getElementById(id);
  const shift = 20; // of the number of a function in the numbers of lines
  const mostPlaces = 12; // where a function is inlined
  const levels = [0.5, 2, 5, 10, 25]; // percentages from which a cell is darker

  // heatOf is the class of a share, as package annotate has it.
  const heatOf = (percent) => {
    const n = levels.filter((l) => percent >= l).length;
    return n > 0 ? `h${n}` : "";
  };

  // lineWeights adds up the samples of parts of the recording by the numbers of lines.
  function lineWeights(ranges, mask, parts) {
    const sums = new Map();
    let all = 0;
    eachIn(ranges, mask, parts, (k) => {
      all += ranges.weight[k];
      const line = ranges.line[k];
      if (line > 0) sums.set(line, (sums.get(line) || 0) + ranges.weight[k]);
    });
    return { sums, all };
  }

  // functionWeights adds up the weights of lines by function, by numbers from 0 on.
  function functionWeights(sums) {
    const list = new Map();
    for (const [line, v] of sums) list.set((line >>> shift) - 1, (list.get((line >>> shift) - 1) || 0) + v);
    return list;
  }

  class CodePanel {
    // data are the parts of package annotate. Their HTML has no scripts, its texts are escaped; the
    // page's policy allows no scripts anyway. Its links lead to lines and are not for the address.
    constructor(app, data) {
      Object.assign(this, { app, data, shown: -1 });
      this.note = make("p", { class: "note", role: "status" });
      this.list = this.parse(data.list);
      this.place = make("div", { class: "listing" });
      $("panel-code").replaceChildren(this.note, this.place);
      this.place.addEventListener("click", (e) => this.follow(e));
      this.index = new Map();
      this.inlined = new Map(); // by frame: its places, heaviest first
      (data.functions || []).forEach((f, i) => {
        if (!this.index.has(f.frame)) this.index.set(f.frame, i);
        for (const c of f.calls || []) {
          if (!this.inlined.has(c.frame)) this.inlined.set(c.frame, []);
          this.inlined.get(c.frame).push({ frame: c.frame, of: i, value: c.value, at: c.at });
        }
      });
      for (const list of this.inlined.values()) list.sort((a, b) => b.value - a.value);
      this.showList();
    }

    parse(html) {
      const parts = new DOMParser().parseFromString(html, "text/html");
      return [...parts.body.childNodes];
    }

    // has reports whether the page has the code of a frame, which may be inlined only.
    has(frame) { return this.index.has(frame) || this.inlined.has(frame); }

    // open shows the code of a frame: of one that is only inlined, where it has most samples.
    open(frame) {
      if (this.index.has(frame)) this.show(this.index.get(frame));
      else this.showPlace(this.inlined.get(frame)[0]);
    }

    follow(e) {
      const to = e.target.closest("a")?.getAttribute("href");
      if (!to?.startsWith("#")) return;
      e.preventDefault();
      const m = /^#f(\d+)$/.exec(to);
      if (m) {
        this.show(Number(m[1]) - 1);
        return;
      }
      this.place.querySelector(".target")?.classList.remove("target");
      const row = this.place.querySelector(`[id="${CSS.escape(to.slice(1))}"]`);
      row?.classList.add("target");
      row?.scrollIntoView({ block: "center" });
    }

    showList() {
      this.shown = -1;
      this.place.replaceChildren(...this.list);
      this.weigh();
    }

    // showPlace shows what is inlined in a function, without the rest of it.
    showPlace(place) {
      this.show(place.of, place.frame);
      const own = (id) => {
        const offset = parseInt(id.slice(id.indexOf("i") + 1), 16);
        return place.at.some((from, k) => k % 2 === 0 && offset >= from && offset <= place.at[k + 1]);
      };
      const lines = new Set();
      let last = false; // rows before an instruction are its lines and calls
      for (const tr of [...this.place.querySelectorAll(".instructions tr")].reverse()) {
        if (tr.id) last = own(tr.id);
        if (tr.id && last) lines.add(tr.dataset.line);
        tr.hidden = !last;
      }
      last = false;
      for (const tr of [...this.place.querySelectorAll(".source tr")].reverse()) {
        const a = tr.querySelector("a");
        if (a) last = tr.hidden = !lines.has(a.getAttribute("href").slice(1));
        else tr.hidden = last;
      }
      const jumps = this.place.querySelector(".jumps");
      if (jumps) jumps.style.display = "none";
      this.scroll();
    }

    // placesOf has a button for each place where a function is inlined.
    placesOf(frame) {
      const list = this.inlined.get(frame) || [], { frames } = this.app.model;
      if (list.length === 0) return [];
      const all = list.reduce((sum, p) => sum + p.value, 0);
      return [make("p", { class: "actions" }, `${cutMiddle(frames.name[frame], 80)} is inlined in `,
        ...list.slice(0, mostPlaces).map((p) => {
          const of = this.data.functions[p.of].frame;
          return make("button", { onclick: () => this.showPlace(p) },
            `${of >= 0 ? cutMiddle(frames.name[of], 60) : "a function"} ${percent(p.value, all)}`);
        }), list.length > mostPlaces ? `and ${list.length - mostPlaces} more` : "")];
    }

    show(i, inlined = -1) {
      const f = this.data.functions?.[i];
      const back = make("p", { class: "actions" },
        make("button", { onclick: () => this.showList() }, "All functions"));
      const frame = inlined >= 0 ? inlined : f ? f.frame : -1;
      if (inlined >= 0) back.append(make("button", { onclick: () => this.show(i) }, "All of its function"));
      if (frame >= 0) {
        back.append(make("button", { onclick: () => this.app.go({ marked: frame }) }, "Mark in the graph"),
          make("button", { onclick: () => this.app.openSandwich(frame) }, "Callers and callees"));
      }
      this.shown = f ? i : -1;
      this.place.replaceChildren(back, ...this.placesOf(frame), ...(f ? this.parse(f.html)
        : [make("p", { class: "note" }, "The code of this function has no space in this page: symbolize annotate shows it.")]));
      this.weigh();
      this.scroll();
    }

    // scroll brings the hottest line and instruction into sight.
    scroll() {
      $("panel-code").scrollTop = 0;
      if (root.innerWidth <= 900) return; // the panel is as high as the code
      for (const table of [".instructions", ".source"]) { // the panel, then the pane of the source
        this.place.querySelector(`${table} .hottest`)?.scrollIntoView({ block: "center" });
      }
      for (const pane of this.place.querySelectorAll(".code, .source")) pane.scrollLeft = 0;
    }

    // weigh shows the shares of the chosen range; without one, those of the recording, as they are.
    weigh() {
      const { app } = this, { parts, model } = app, { ranges } = model;
      this.restore();
      this.note.textContent = "";
      if (!parts) return;
      if (!ranges.line) {
        this.note.textContent = "The code has the samples of all of the recording: for this range, " +
          `symbolize annotate ${app.times.option(app.state.range)}`;
        return;
      }
      this.note.textContent = "samples of the chosen range";
      const { sums, all } = lineWeights(ranges, app.mask, parts.now), of = functionWeights(sums);
      this.place.querySelectorAll("nav tr").forEach((tr) => {
        const m = /^#f(\d+)$/.exec(tr.querySelector("a")?.getAttribute("href") || "");
        if (!m) return;
        const v = of.get(Number(m[1]) - 1) || 0;
        this.set(tr.cells[0], all > 0 ? 100 * v / all : 0, true);
        this.set(tr.cells[1], null);
      });
      if (this.shown < 0) return;
      const total = of.get(this.shown) || 0, byLine = new Map();
      for (const tr of this.place.querySelectorAll("tr[id]")) {
        const offset = parseInt(tr.id.slice(tr.id.indexOf("i") + 1), 16);
        const v = sums.get((this.shown + 1) * 2 ** shift + offset) || 0;
        this.set(tr.cells[0], total > 0 ? 100 * v / total : 0);
        byLine.set(tr.dataset.line, (byLine.get(tr.dataset.line) || 0) + v);
      }
      for (const a of this.place.querySelectorAll(".source a")) {
        const v = byLine.get(a.getAttribute("href").slice(1)) || 0;
        this.set(a.closest("tr").cells[0], total > 0 ? 100 * v / total : 0);
      }
    }

    // set writes a percentage into a cell, nothing for null, and keeps what it was.
    set(cell, percent, zero) {
      this.old.push([cell, cell.textContent, cell.className]);
      cell.textContent = percent === null || percent === 0 && !zero ? "" : `${percent.toFixed(2)}%`;
      cell.className = percent === null ? "n" : `n ${heatOf(percent)}`;
    }

    restore() {
      for (const [cell, text, name] of this.old || []) {
        cell.textContent = text;
        cell.className = name;
      }
      this.old = [];
    }
  }

  root.symbolizeCode = { CodePanel, heatOf, lineWeights, functionWeights };
})(globalThis);
