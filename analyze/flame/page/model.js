// The data of the page and what is computed of it. No function here touches the document, so
// that node's test runner reads this file, too.
//
// The data is one JSON object; package flame describes it. A tree is kept in arrays in preorder:
// children follow their parent, so that one pass from the end adds up all weights.
(function (root) {
  "use strict";

  // decodeTree makes a tree of its encoded arrays. depth[0] is 0, the root; cells holds, for
  // each node that has any, [node, column, self, left] as differences of nodes.
  function decodeTree(t) {
    const n = t.frame.length;
    const tree = {
      n,
      frame: Int32Array.from(t.frame), // index into frames; -1 for the root
      inlined: new Uint8Array(n), // 1 where all its calls were inlined
      depth: Int32Array.from(t.depth),
      parent: new Int32Array(n).fill(-1),
      end: new Int32Array(n), // after the last descendant
      cellNode: [], cellColumn: [], cellSelf: [], cellLeft: [],
      deepest: 0,
    };
    const open = [];
    for (let i = 0; i < n; i++) {
      while (open.length > tree.depth[i]) tree.end[open.pop()] = i;
      if (open.length > 0) tree.parent[i] = open[open.length - 1];
      open.push(i);
      tree.deepest = Math.max(tree.deepest, tree.depth[i]);
    }
    while (open.length > 0) tree.end[open.pop()] = n;
    for (const i of t.inlined) tree.inlined[i] = 1;
    let node = 0;
    for (let k = 0; k < t.cells.length; k += 4) {
      node += t.cells[k];
      tree.cellNode.push(node);
      tree.cellColumn.push(t.cells[k + 1]);
      tree.cellSelf.push(t.cells[k + 2]);
      tree.cellLeft.push(t.cells[k + 3]);
    }
    return tree;
  }

  // decode prepares the data.
  function decode(data) {
    const model = Object.assign({}, data, {
      forward: decodeTree(data.forward),
      reverse: decodeTree(data.reverse),
    });
    model.differential = !!data.scaling;
    if (data.scaling) model.scaling = Object.assign({ sides: data.events }, data.scaling);
    return model;
  }

  // weigh adds up a tree for the columns whose mask is not 0. self is what ends in a node, left
  // what goes on in children that the page does not have, cum all of it.
  function weigh(tree, mask) {
    const self = new Float64Array(tree.n), left = new Float64Array(tree.n);
    for (let k = 0; k < tree.cellNode.length; k++) {
      if (!mask[tree.cellColumn[k]]) continue;
      self[tree.cellNode[k]] += tree.cellSelf[k];
      left[tree.cellNode[k]] += tree.cellLeft[k];
    }
    return addUp(tree, self, left);
  }

  // addUp returns what weigh does, of self and left.
  function addUp(tree, self, left) {
    const cum = new Float64Array(tree.n);
    let allLeft = 0;
    for (let i = tree.n - 1; i >= 0; i--) {
      cum[i] += self[i] + left[i];
      allLeft += left[i];
      if (i > 0) cum[tree.parent[i]] += cum[i];
    }
    return { self, left, cum, allLeft };
  }

  // selectColumns returns the mask of an event's columns whose labels are those of chosen, an
  // object of label number to value.
  function selectColumns(model, event, chosen) {
    const mask = new Uint8Array(model.columns.length);
    model.columns.forEach((c, i) => {
      const same = Object.keys(chosen).every((l) => c.values[l] === chosen[l]);
      mask[i] = c.event === event && same ? 1 : 0;
    });
    return mask;
  }

  // stateWeights returns the weight of each node by the state of threads, a list of weights as of
  // weigh for each of count states; number is the state of a label. Columns of other labels have the
  // last one.
  function stateWeights(model, tree, mask, count, number) {
    const at = model.labels.findIndex((l) => l.name === "state");
    const of = model.columns.map((c) => c.values[at] >= 0 ? number(model.labels[at].values[c.values[at]]) : count - 1);
    return Array.from({ length: count }, (_, s) => weigh(tree, mask.map((m, i) => m && of[i] === s)));
  }

  // mainStates returns the state with the most weight of each node of a tree, and of each frame.
  function mainStates(model, tree, mask, count, number) {
    const weights = stateWeights(model, tree, mask, count, number);
    const frames = model.frames.name.map(() => new Float64Array(count));
    const most = (values) => values.reduce((best, v, i) => v > values[best] ? i : best, 0);
    const nodes = Uint8Array.from({ length: tree.n }, (_, n) => {
      const values = weights.map((w) => w.cum[n]);
      if (tree.frame[n] >= 0) weights.forEach((w, s) => { frames[tree.frame[n]][s] += w.self[n] + w.left[n]; });
      return most(values);
    });
    return { nodes, frames: frames.map(most), sums: weights.map((w) => w.cum[0]) };
  }

  // layout places the nodes that are at least least pixels wide. The path from the root to
  // zoomed takes the whole width. Each box is {node, x, w, row}; those with thin set, and the
  // parent as node, are in the place of neighbours that are narrower, or not in the page.
  function layout(tree, cum, zoomed, width, least) {
    const boxes = [];
    if (tree.n === 0 || !(cum[zoomed] > 0)) return boxes;
    const path = [];
    for (let i = zoomed; i >= 0; i = tree.parent[i]) path.unshift(i);
    for (const i of path) boxes.push({ node: i, x: 0, w: width, row: tree.depth[i] });
    const scale = width / cum[zoomed];
    const next = []; // by depth: where the next child begins
    const thin = []; // by depth: the width of thin children just before that
    const fill = (d) => {
      if (thin[d] >= least) {
        boxes.push({ node: tree.parent[thinNode[d]], x: next[d] - thin[d], w: thin[d], row: d,
          thin: true });
      }
      thin[d] = 0;
    };
    const thinNode = [];
    next[tree.depth[zoomed] + 1] = 0;
    let deep = tree.depth[zoomed];
    for (let i = zoomed + 1; i < tree.end[zoomed];) {
      const d = tree.depth[i], w = cum[i] * scale, x = next[d];
      for (; deep > d; deep--) fill(deep);
      deep = d;
      if (w < least) {
        next[d] += w;
        thin[d] = (thin[d] || 0) + w;
        thinNode[d] = i;
        i = tree.end[i];
        continue;
      }
      fill(d);
      next[d] += w;
      boxes.push({ node: i, x, w, row: d });
      next[d + 1] = x;
      i++;
    }
    for (; deep > tree.depth[zoomed]; deep--) fill(deep);
    return boxes;
  }

  // compileSearch returns a test of names: a regular expression, or the text itself where it is none;
  // an upper-case letter, but of a class as \S, makes it exact, as --focus is. It returns null for an
  // empty text.
  function compileSearch(text) {
    if (!text) return null;
    const exact = /\p{Lu}/u.test(text.replace(/\\./g, ""));
    let re;
    try {
      re = new RegExp(text, exact ? "" : "i");
    } catch {
      if (exact) return (s) => s.includes(text);
      const low = text.toLowerCase();
      return (s) => s.toLowerCase().includes(low);
    }
    return (s) => re.test(s);
  }

  // labelKind is the kind of frames that are labels of samples, which --focus does not match.
  const labelKind = 6;

  // matchFrames returns for each frame whether its name, its source file or its object matches, as for
  // --focus.
  function matchFrames(model, test) {
    const hit = new Uint8Array(model.frames.name.length), { name, file, object, kind } = model.frames;
    if (!test) return hit;
    const objectHit = model.objects.map((o) => test(o.path));
    for (let f = 0; f < hit.length; f++) {
      const o = object[f];
      hit[f] = kind?.[f] !== labelKind && (test(name[f]) || (o >= 0 && objectHit[o]) ||
        !!file?.[f] && test(file[f].replace(/:\d+$/, ""))) ? 1 : 0;
    }
    return hit;
  }

  // matchedWeight is the weight of all stacks with a matching frame below node.
  function matchedWeight(tree, cum, hit, node) {
    let sum = 0;
    for (let i = node; i < tree.end[node];) {
      if (tree.frame[i] >= 0 && hit[tree.frame[i]]) {
        sum += cum[i];
        i = tree.end[i];
      } else i++;
    }
    return sum;
  }

  // newTree starts a tree that grows by child. Those of a differential page have values of the
  // base, too.
  function newTree(frame) {
    return { kids: new Map(), frame, self: 0, left: 0, baseSelf: 0, baseLeft: 0, inlined: true };
  }

  function child(t, frame, inlined) {
    let k = t.kids.get(frame);
    if (!k) {
      k = newTree(frame);
      t.kids.set(frame, k);
    }
    k.inlined = k.inlined && inlined;
    return k;
  }

  // flatten turns a grown tree into arrays and weights, heaviest children first. Stacks can be
  // deep: it does not call itself.
  function flatten(top, hasBase) {
    const order = [top];
    for (let i = 0; i < order.length; i++) {
      order[i].cum = order[i].self + order[i].left;
      order.push(...order[i].kids.values());
    }
    for (let i = order.length - 1; i >= 0; i--) {
      for (const k of order[i].kids.values()) order[i].cum += k.cum;
    }
    const frame = [], depth = [], inlined = [], nodes = [];
    const open = [[top, 0]];
    while (open.length > 0) {
      const [t, d] = open.pop();
      if (t.inlined && d > 0) inlined.push(frame.length);
      frame.push(t.frame);
      depth.push(d);
      nodes.push(t);
      const kids = Array.from(t.kids.values());
      kids.sort((a, b) => a.cum - b.cum || b.frame - a.frame);
      for (const k of kids) open.push([k, d + 1]);
    }
    const tree = decodeTree({ frame, depth, inlined, cells: [] });
    const sums = (self, left) => addUp(tree, Float64Array.from(nodes, (t) => t[self]),
      Float64Array.from(nodes, (t) => t[left]));
    const w = sums("self", "left");
    if (hasBase) w.base = sums("baseSelf", "baseLeft");
    return { tree, weights: w };
  }

  // sandwich returns the trees of what a function calls and of what calls it. Recursion counts
  // once: by the outermost call.
  function sandwich(tree, weights, frame) {
    const callees = newTree(-1), callers = newTree(-1);
    for (let i = 0; i < tree.n;) {
      if (tree.frame[i] !== frame) {
        i++;
        continue;
      }
      merge(child(callees, frame, !!tree.inlined[i]), tree, weights, i);
      let t = child(callers, frame, !!tree.inlined[i]);
      for (let up = tree.parent[i]; up > 0; up = tree.parent[up]) {
        t = child(t, tree.frame[up], !!tree.inlined[up]);
      }
      t.self += weights.cum[i];
      if (weights.base) t.baseSelf += weights.base.cum[i];
      i = tree.end[i];
    }
    return { callees: flatten(callees, !!weights.base), callers: flatten(callers, !!weights.base) };
  }

  // focused returns the weights of the stacks that have a function.
  function focused(tree, weights, frame) {
    const inside = new Uint8Array(tree.n);
    for (let i = 1; i < tree.n; i++) inside[i] = tree.frame[i] === frame || inside[tree.parent[i]] ? 1 : 0;
    const part = (w) => addUp(tree, w.self.map((v, i) => (inside[i] ? v : 0)),
      w.left.map((v, i) => (inside[i] ? v : 0)));
    const out = part(weights);
    if (weights.base) out.base = part(weights.base);
    return out;
  }

  // without returns a tree and its weights without the frames of functions: what they call is
  // called by their callers.
  function without(tree, weights, hidden) {
    const top = newTree(-1), at = [top];
    for (let i = 0; i < tree.n; i++) {
      const up = i > 0 ? at[tree.depth[i] - 1] : top, f = tree.frame[i];
      const t = i === 0 || hidden.includes(f) ? up : child(up, f, !!tree.inlined[i]);
      at[tree.depth[i]] = t;
      t.self += weights.self[i];
      t.left += weights.left[i];
      if (!weights.base) continue;
      t.baseSelf += weights.base.self[i];
      t.baseLeft += weights.base.left[i];
    }
    return flatten(top, !!weights.base);
  }

  // selectedWeight is the weight of the stacks with any of the selected nodes; one inside another
  // counts once.
  function selectedWeight(tree, cum, nodes) {
    const inside = (n) => {
      for (let up = tree.parent[n]; up >= 0; up = tree.parent[up]) if (nodes.has(up)) return true;
      return false;
    };
    return [...nodes].reduce((sum, n) => sum + (inside(n) ? 0 : cum[n]), 0);
  }

  // merge adds the subtree of a node to t.
  function merge(t, tree, weights, node) {
    const at = [t];
    const base = tree.depth[node];
    for (let i = node; i < tree.end[node]; i++) {
      const d = tree.depth[i] - base;
      const k = d === 0 ? t : child(at[d - 1], tree.frame[i], !!tree.inlined[i]);
      at[d] = k;
      k.self += weights.self[i];
      k.left += weights.left[i];
      if (!weights.base) continue;
      k.baseSelf += weights.base.self[i];
      k.baseLeft += weights.base.left[i];
    }
  }

  // table returns the rows of the selected columns: frame, flat, cum.
  function table(model, mask) {
    const flat = new Map(), cum = new Map(), cells = model.top.cells;
    let frame = 0;
    for (let k = 0; k < cells.length; k += 4) {
      frame += cells[k];
      if (!mask[cells[k + 1]]) continue;
      flat.set(frame, (flat.get(frame) || 0) + cells[k + 2]);
      cum.set(frame, (cum.get(frame) || 0) + cells[k + 3]);
    }
    const rows = [];
    for (const [f, c] of cum) rows.push({ frame: f, flat: flat.get(f) || 0, cum: c });
    return rows;
  }

  // seconds has the numbers that order rows which have the same of another.
  const seconds = { flat: "cum", cum: "flat", baseFlat: "baseCum", baseCum: "baseFlat",
    flatChange: "cumChange", cumChange: "flatChange" };

  // sortRows sorts rows of the table by "name" or a number, the greatest first; with up "size" the
  // greatest changes first, those that are noise last.
  function sortRows(rows, names, by, up) {
    const second = seconds[by], noise = by.replace("Change", "Noise");
    rows.sort((a, b) => {
      if (up === "size") {
        const order = a[noise] - b[noise] || Math.abs(b[by]) - Math.abs(a[by]) ||
          Math.abs(b[second]) - Math.abs(a[second]);
        return order || (names[a.frame] < names[b.frame] ? -1 : 1);
      }
      const name = names[a.frame] < names[b.frame] ? -1 : names[a.frame] > names[b.frame] ? 1 : 0;
      const order = by === "name" ? name : b[by] - a[by] || b[second] - a[second] || name;
      return (up ? -order : order) || a.frame - b.frame;
    });
    return rows;
  }

  root.symbolizeModel = { decode, decodeTree, addUp, weigh, selectColumns, mainStates, layout, compileSearch,
    matchFrames, matchedWeight, sandwich, focused, without, selectedWeight, table, sortRows };
})(globalThis);
