// The menu of a frame, and the map of the whole graph above a zoomed one.
(function (root) {
  "use strict";

  const { layout } = root.symbolizeModel;
  const { cutMiddle } = root.symbolizeFormat;
  const { make, showTooltip } = root.symbolizePanels;

  const $ = (id) => document.getElementById(id);
  const mapHeight = 34, mapRow = 2;

  // focusOption is the option of other commands for the samples with a function on the stack.
  function focusOption(name) {
    const exact = `^${name.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&")}$`;
    return `--focus '${exact.replace(/'/g, "'\\''")}'`;
  }

  // copy puts a text on the clipboard.
  async function copy(text) {
    try {
      await root.navigator.clipboard.writeText(text);
    } catch { // without permission: as an old browser does
      const area = make("textarea", { readonly: "" });
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  }

  // FrameMenu shows what can be done with the function of a frame.
  class FrameMenu {
    constructor(app) {
      this.app = app;
      this.place = $("menu");
      this.place.addEventListener("keydown", (e) => this.key(e));
      document.addEventListener("pointerdown", (e) => {
        if (!this.place.hidden && !this.place.contains(e.target)) this.close();
      });
    }

    // items are the entries: text, key, action.
    items(frame, node) {
      const { app } = this, name = app.model.frames.name[frame];
      const said = (text) => copy(text).then(() => app.say(`copied: ${text}`));
      const list = [
        ["Callers and callees", "s", () => app.openSandwich(frame)],
        ["Focus: only its stacks", "f", () => app.focusOn(frame)],
        ["Hide the function", "h", () => app.hide(frame)],
        ["Copy name", "y", () => said(name)],
        ["Copy as --focus", "Y", () => said(focusOption(name))],
      ];
      if (app.hasCode(frame)) list.push(["Source and code", "o", () => app.openCode(frame)]);
      if (node !== null) list.unshift(["Zoom", "Enter", () => app.choose(app.graph, node)]);
      return list;
    }

    // run performs the entry with a key, if there is one.
    run(key, frame) {
      const item = frame >= 0 && this.items(frame, null).find((i) => i[1] === key);
      if (item) item[2]();
      return !!item;
    }

    // open shows the menu at a point of the window.
    open(graph, node, x, y) {
      const frame = graph.shown.tree.frame[node];
      if (frame < 0) return;
      this.graph = graph;
      showTooltip($("tooltip"), null);
      const name = this.app.model.frames.name[frame];
      this.place.replaceChildren(make("div", { class: "name" }, cutMiddle(name, 80)),
        ...this.items(frame, graph === this.app.graph ? node : null).map(([text, key, action]) =>
          make("button", { role: "menuitem", tabindex: -1, onclick: () => {
            this.close();
            action();
          } }, text, make("kbd", null, key))));
      this.place.setAttribute("aria-label", cutMiddle(name, 80));
      this.place.hidden = false;
      const box = this.place.getBoundingClientRect();
      this.place.style.left = `${Math.max(4, Math.min(x, root.innerWidth - box.width - 4))}px`;
      this.place.style.top = `${Math.max(4, Math.min(y, root.innerHeight - box.height - 4))}px`;
      this.place.querySelector("button").focus();
    }

    close() {
      this.place.hidden = true;
      this.graph?.canvas.focus({ preventScroll: true });
    }

    key(e) {
      const buttons = [...this.place.querySelectorAll("button")], at = buttons.indexOf(document.activeElement);
      const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[e.key];
      if (to !== undefined) buttons.at(to % buttons.length).focus();
      else if (e.key === "Escape" || e.key === "Tab") this.close();
      else if (e.key === "Enter" || e.key === " ") buttons[at]?.click();
      else {
        const button = buttons.find((b) => b.querySelector("kbd").textContent === e.key);
        if (!button) return;
        button.click();
      }
      e.preventDefault();
      e.stopPropagation();
    }
  }

  // MiniMap draws the whole graph, with the zoomed part marked; a click zooms.
  class MiniMap {
    constructor(place, app) {
      Object.assign(this, { place, app });
      this.canvas = make("canvas", { role: "img", "aria-label": "the whole graph, with the zoomed part" });
      place.append(this.canvas);
      this.canvas.addEventListener("click", (e) => {
        const row = Math.floor(e.offsetY / mapRow);
        const hit = this.boxes.filter((b) => !b.thin && b.row <= row && b.x <= e.offsetX && e.offsetX < b.x + b.w);
        if (hit.length) app.go({ zoomed: hit.reduce((a, b) => (b.row > a.row ? b : a)).node });
      });
    }

    // show draws the tree, or hides the map where all of it is shown.
    show(tree, weights, zoomed) {
      this.place.hidden = zoomed === 0;
      if (zoomed === 0) return;
      const width = Math.max(50, this.place.clientWidth), ratio = root.devicePixelRatio || 1;
      this.boxes = layout(tree, weights.cum, 0, width, 0.8);
      const c = this.canvas, g = c.getContext("2d");
      c.width = Math.round(width * ratio);
      c.height = Math.round(mapHeight * ratio);
      c.style.width = `${width}px`;
      c.style.height = `${mapHeight}px`;
      g.setTransform(ratio, 0, 0, ratio, 0, 0);
      let mark = null;
      for (const b of this.boxes) {
        if (b.node === zoomed && !b.thin) mark = b;
        g.fillStyle = b.thin ? "rgb(128 136 150 / 30%)" : this.app.graph.colour(b.node, tree.frame[b.node]);
        if (b.row * mapRow < mapHeight) g.fillRect(b.x, b.row * mapRow, Math.max(b.w - 0.4, 0.4), mapRow);
      }
      // A part that is too thin for a box is marked where its nearest caller with one is.
      for (let up = zoomed; !mark; up = tree.parent[up]) mark = this.boxes.find((b) => b.node === up && !b.thin);
      g.lineWidth = 2;
      g.strokeStyle = this.app.dark ? "#fff" : "#111";
      g.strokeRect(mark.x + 1, 1, Math.max(mark.w - 2, 2), mapHeight - 2);
    }
  }

  root.symbolizeMenu = { FrameMenu, MiniMap, focusOption };
})(globalThis);
