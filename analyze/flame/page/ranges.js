// The samples of a page in order of time, and the sums of ranges of them. Package flame describes
// the data (rangeData). Nothing here touches the document.
(function (root) {
  "use strict";

  const { addUp } = root.symbolizeModel;
  const { roundStep } = root.symbolizeFormat;

  // decodeRanges prepares the data: times are ticks from the first one.
  function decodeRanges(data) {
    const time = Int32Array.from(data.time);
    for (let i = 1; i < time.length; i++) time[i] += time[i - 1];
    return Object.assign({}, data, { n: time.length, time, of: Int32Array.from(data.of),
      place: Int32Array.from(data.place), weight: Float64Array.from(data.weight),
      count: Int32Array.from(data.count), line: data.line && Int32Array.from(data.line) });
  }

  // lower returns the first sample at a tick or later.
  function lower(ranges, tick) {
    let low = 0, high = ranges.n;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (ranges.time[mid] < tick) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  // eachIn calls f with the numbers of the samples in parts, pairs of first and last tick, of the
  // columns with a mask.
  function eachIn(ranges, mask, parts, f) {
    const chosen = ranges.series.map(([, column]) => mask[column]);
    for (const [from, to] of parts) {
      for (let k = lower(ranges, from), end = lower(ranges, to + 1); k < end; k++) {
        if (chosen[ranges.of[k]]) f(k);
      }
    }
  }

  // rest returns the parts of the recording outside of a range.
  function rest(ranges, [from, to]) {
    return [[0, from - 1], [to + 1, ranges.ticks - 1]].filter(([a, b]) => a <= b);
  }

  // leafPlaces finds the places of the forward tree's nodes in the tree by leaf: of a stack that
  // ends in the node, the deepest node that the page has, twice, plus one if frames are left out.
  function leafPlaces(forward, reverse) {
    const key = (parent, frame) => parent * 0x200000 + frame, children = new Map();
    for (let i = 1; i < reverse.n; i++) children.set(key(reverse.parent[i], reverse.frame[i]), i);
    const places = new Int32Array(forward.n);
    for (let i = 0; i < forward.n; i++) {
      let at = 0, up = i;
      for (; up > 0; up = forward.parent[up]) {
        const next = children.get(key(at, forward.frame[up]));
        if (next === undefined) break;
        at = next;
      }
      places[i] = 2 * at + (up > 0 ? 1 : 0);
    }
    return places;
  }

  // weighRange adds up the samples of parts as weigh does, in the forward tree or by leaf. Of a
  // frame that the page leaves out the leaf is not known.
  function weighRange(model, ranges, mask, parts, reverse) {
    const tree = reverse ? model.reverse : model.forward;
    if (reverse) ranges.leaf ||= leafPlaces(model.forward, model.reverse);
    const self = new Float64Array(tree.n), left = new Float64Array(tree.n);
    eachIn(ranges, mask, parts, (k) => {
      let p = ranges.place[k];
      if (reverse) p = p & 1 ? 1 : ranges.leaf[p >> 1];
      (p & 1 ? left : self)[p >> 1] += ranges.weight[k];
    });
    return addUp(tree, self, left);
  }

  // tableOf returns the rows of the table of weights of the forward tree, with frames as numbers of
  // frames. Recursion counts once.
  function tableOf(tree, weights, frames) {
    const flat = new Float64Array(frames), cum = new Float64Array(frames);
    const active = new Int32Array(frames), open = [], rows = [];
    for (let i = 1; i < tree.n; i++) {
      while (open.length >= tree.depth[i]) active[open.pop()]--;
      const f = tree.frame[i];
      open.push(f);
      if (active[f]++ === 0) cum[f] += weights.cum[i];
      flat[f] += weights.self[i];
    }
    for (let f = 0; f < frames; f++) {
      if (cum[f] > 0) rows.push({ frame: f, flat: flat[f], cum: cum[f] });
    }
    return rows;
  }

  // countIn returns how many samples parts have.
  function countIn(ranges, mask, parts) {
    let n = 0;
    eachIn(ranges, mask, parts, (k) => (n += ranges.count[k]));
    return n;
  }

  // histogram counts the samples of n columns of equal width over the recording.
  function histogram(ranges, mask, n) {
    const counts = new Float64Array(n);
    eachIn(ranges, mask, [[0, ranges.ticks - 1]], (k) => {
      counts[Math.floor(ranges.time[k] * n / ranges.ticks)] += ranges.count[k];
    });
    return counts;
  }

  // gridOf counts samples as a grid for a map. by returns the row of a thread, by its number; rows
  // are as many as names. Columns are a round time, at most most of them.
  function gridOf(ranges, mask, most, names, by) {
    const ns = roundStep(ranges.ticks * ranges.tick / most);
    const width = Math.max(1, Math.ceil(ns / ranges.tick)) * ranges.tick;
    const start = BigInt(ranges.start), sums = new Map();
    let total = 0;
    eachIn(ranges, mask, [[0, ranges.ticks - 1]], (k) => {
      const c = Math.floor(ranges.time[k] * ranges.tick / width);
      const r = by(ranges.series[ranges.of[k]][0]);
      if (r < 0) return;
      sums.set(c * names.length + r, (sums.get(c * names.length + r) || 0) + ranges.count[k]);
      total += ranges.count[k];
    });
    const cells = Array.from(sums, ([key, n]) => ({ c: Math.floor(key / names.length),
      r: key % names.length, n }));
    return { rows: names, start: String(start), width, total, untimed: 0, cells,
      columns: Math.ceil(ranges.ticks * ranges.tick / width) };
  }

  root.symbolizeRanges = { decodeRanges, weighRange, tableOf, countIn, rest,
    histogram, gridOf, eachIn };
})(globalThis);
