// What a differential page computes: two sides of one tree, and the change between them. The
// values of the new side are scaled, if they are, as soon as they are added up.
(function (root) {
  "use strict";

  const { weigh, selectColumns, table } = root.symbolizeModel;
  const { quantity, percent } = root.symbolizeFormat;

  // The events of a differential page.
  const newSide = 0, baseSide = 1;

  // weighBoth adds up a tree for both sides.
  function weighBoth(model, tree) {
    return pair(model, weigh(tree, selectColumns(model, newSide, {})),
      weigh(tree, selectColumns(model, baseSide, {})));
  }

  // pair returns the sums of the new side, scaled, with those of the base as base.
  function pair(model, w, base) {
    const { scale } = model.scaling;
    for (const list of [w.self, w.left, w.cum]) list.forEach((v, i) => (list[i] = v * scale));
    return Object.assign(w, { allLeft: w.allLeft * scale, base });
  }

  // scalingOf compares two ranges of a recording by their shares: values of the first are scaled
  // to the total of the base. now and base have total, samples and unit.
  function scalingOf(now, base, steps) {
    return { scale: now.total > 0 && base.total > 0 ? base.total / now.total : 1, steps,
      total: base.total || now.total || 1, raw: false, sides: [now, base] };
  }

  // compareTable returns the rows of the table: frame, flat, cum, scaled, with those of the base
  // and the changes. now are the rows of the new side, scaled.
  function compareTable(model, now = newRows(model), base = baseRows(model)) {
    const rows = new Map();
    const row = (frame) => {
      if (!rows.has(frame)) rows.set(frame, { frame, flat: 0, cum: 0, baseFlat: 0, baseCum: 0 });
      return rows.get(frame);
    };
    for (const r of now) Object.assign(row(r.frame), r);
    for (const r of base) Object.assign(row(r.frame), { baseFlat: r.flat, baseCum: r.cum });
    const list = Array.from(rows.values());
    for (const r of list) {
      useMedians(model, r, "flat", "baseFlat");
      useMedians(model, r, "cum", "baseCum");
      r.flatChange = change(model, r.flat, r.baseFlat);
      r.cumChange = change(model, r.cum, r.baseCum);
      r.flatNoise = isNoise(model, r.frame, "flat", r.flat, r.baseFlat);
      r.cumNoise = isNoise(model, r.frame, "cum", r.cum, r.baseCum);
    }
    return list;
  }

  function newRows(model) {
    const { scale } = model.scaling;
    return table(model, selectColumns(model, newSide, {}))
      .map((r) => ({ frame: r.frame, flat: r.flat * scale, cum: r.cum * scale }));
  }

  const baseRows = (model) => table(model, selectColumns(model, baseSide, {}));

  // isNoise reports whether a change is not significant; without tests, whether it is below two
  // standard deviations of counting samples.
  function isNoise(model, frame, kind, now, base) {
    const { tests, sides, scale } = model.scaling;
    if (tests) return !testOf(model, frame, kind)?.significant;
    const each = (side) => (side.samples > 0 ? side.total / side.samples : 0);
    return (now - base) ** 2 <= 4 * (now * each(sides[newSide]) * scale + base * each(sides[baseSide]));
  }

  // testOf returns the test of a function, for "flat" or "cum"; null if there is none.
  function testOf(model, frame, kind) {
    const t = model.scaling.tests?.[kind][frame];
    if (!t) return null;
    const [base, now, baseSpread, nowSpread, p] = t;
    return { base, now, baseSpread, nowSpread, p, significant: p < model.scaling.tests.alpha };
  }

  // useMedians gives a row the medians of a function that was tested, in the unit of the sums.
  function useMedians(model, row, kind, baseKind) {
    const t = testOf(model, row.frame, kind);
    if (!t) return;
    const factor = model.scaling.total / model.scaling.tests.total;
    row[kind] = t.now * factor;
    row[baseKind] = t.base * factor;
    row[`${kind}Test`] = t;
  }

  // testText describes what several profiles say of a function; "" without several.
  function testText(model, frame, kind) {
    const { tests } = model.scaling;
    if (!tests) return "";
    const t = testOf(model, frame, kind);
    if (!t) return "too light to be tested";
    const { unit } = model.scaling.sides[newSide];
    const spread = (v) => (v > 0 ? ` ±${(100 * v).toFixed(1)}%` : "");
    const p = t.p >= 0.001 ? `p = ${t.p.toFixed(3)}` : "p < 0.001";
    return `medians of ${tests.new} and ${tests.base}: new ${quantity(t.now, unit)}` +
      `${spread(t.nowSpread)}, base ${quantity(t.base, unit)}${spread(t.baseSpread)} ` +
      `(${growth(t.now, t.base)}), ${t.significant ? "significant" : "not significant"}, ${p}`;
  }

  // change is what a scaled value changed by, as a percentage of the total of the base. What
  // scaling rounds is no change.
  function change(model, now, base) {
    const c = 100 * (now - base) / model.scaling.total;
    return Math.abs(c) < 1e-9 ? 0 : c;
  }

  // changeStep is the number of the colour of a change: 0 for none, above for growth.
  function changeStep(model, percentage) {
    const n = model.scaling.steps.filter((s) => Math.abs(percentage) >= s).length;
    return percentage < 0 ? 0 - n : n;
  }

  // The colours of changes, the greatest loss first: the same as in changes.go. The middle
  // depends on the theme.
  const colours = ["#4393c3", "#92c5de", "#d1e5f0", "", "#fddbc7", "#f4a582", "#d6604d"];

  function changeColour(step, dark) {
    return colours[step + 3] || (dark ? "#8a909c" : "#e3e5e9");
  }

  // signed prints a percentage with its sign, and never a change as none.
  function signed(v) {
    if (v === 0) return "0";
    const text = Math.abs(v).toFixed(2);
    return (v < 0 ? "-" : "+") + (text === "0.00" ? "<0.01" : text);
  }

  // status is "new" or "gone" where a value is on one side alone.
  function status(now, base) {
    return base === 0 && now > 0 ? "new" : now === 0 && base > 0 ? "gone" : "";
  }

  // growth prints the growth by the base: "+20.00%".
  function growth(now, base) {
    return status(now, base) || `${signed(base > 0 ? 100 * (now - base) / base : 0)}%`;
  }

  // points names the unit of changes.
  function points(model) {
    return model.scaling.raw ? "% of the base" : " points";
  }

  // compareText prints a value of both sides: new, base, change in the unit, by the base, and
  // in points.
  function compareText(model, now, base) {
    const { unit } = model.scaling.sides[newSide], by = change(model, now, base);
    if (by === 0) base = now;
    const sign = by < 0 ? "-" : by > 0 ? "+" : "";
    const nowAll = model.scaling.sides[newSide].total * model.scaling.scale;
    return `new ${quantity(now, unit)}, ${percent(now, nowAll)}` +
      ` · base ${quantity(base, unit)}, ${percent(base, model.scaling.sides[baseSide].total)}` +
      ` · ${sign}${quantity(Math.abs(now - base), unit)} (${growth(now, base)}), ` +
      `${signed(by)}${points(model)}`;
  }

  // vanished returns the nodes that only the base has, without those below them, heaviest first.
  function vanished(tree, weights) {
    const list = [], { cum } = weights.base;
    for (let i = 1; i < tree.n;) {
      if (weights.cum[i] === 0 && cum[i] > 0) {
        list.push(i);
        i = tree.end[i];
      } else i++;
    }
    return list.sort((a, b) => cum[b] - cum[a] || a - b);
  }

  root.symbolizeCompare = { weighBoth, pair, scalingOf, compareTable, isNoise, change, changeStep, changeColour, signed,
    status, points, compareText, testOf, testText, vanished };
})(globalThis);
