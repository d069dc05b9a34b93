// The page of heat maps.
(function (root) {
  "use strict";

  const { thousands } = root.symbolizeFormat;
  const { Heat, rangeText, within, shortTime } = root.symbolizeHeat;
  const $ = (id) => document.getElementById(id);

  function start() {
    const model = JSON.parse(new TextDecoder().decode(
      Uint8Array.from(atob($("data").textContent.trim()), (c) => c.charCodeAt(0))));
    let dark = root.matchMedia("(prefers-color-scheme: dark)").matches;
    const theme = () => {
      document.documentElement.dataset.theme = dark ? "dark" : "light";
      $("theme").textContent = dark ? "Light" : "Dark";
    };
    theme();
    $("subtitle").textContent = model.about.map((f) => f.text).join("  ·  ");
    const grid = model.grid;
    $("status").textContent = `${thousands(grid.total)} samples of ${model.event}; a column is ` +
      `${shortTime(grid.width)}` +
      (grid.bpf_programs ? "; bars show when BPF programs were loaded" : "") +
      (grid.untimed ? `; ${thousands(grid.untimed)} samples have no time` : "");
    const heat = new Heat($("heat"), grid, {
      dark: () => dark,
      show: (text, e) => {
        const tip = $("tooltip");
        tip.hidden = !text;
        if (!text) return;
        tip.textContent = text;
        tip.style.left = `${Math.min(e.clientX + 14, root.innerWidth - tip.offsetWidth - 8)}px`;
        tip.style.top = `${e.clientY + 18}px`;
      },
      chosen: (a, b) => {
        $("range").hidden = false;
        $("range").textContent = rangeText(grid, a, b);
        $("range-note").textContent = `${thousands(within(grid, a, b))} samples; an option of ` +
          "resolve, top, flamegraph and the others";
      },
    });
    $("theme").addEventListener("click", () => {
      dark = !dark;
      theme();
      heat.draw();
    });
    root.symbolizeHeatPage = heat;
    document.documentElement.dataset.ready = "1";
  }

  start();
})(globalThis);
