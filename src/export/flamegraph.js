'use strict';
// Draws the profile in #data: columns of numbers, deflated, in base64 (src/export/flamegraph.cpp).

const kRow = 18;         // pixels
const kLeast = 0.4;      // narrower functions are not drawn
const kCells = 50;       // cells of a column of the heat map
const KIND = ['python', 'native', 'kernel', 'mark', 'thread'];
// What the threads did, as `why` divides; in this order.
const USE = {
  python: 'Python', c: 'C', undecided: 'Python or C', gc: 'GC', import: 'import', kernel: 'kernel', '': 'unknown',
};
const HUE = [207, 38, 8, 285, 150];

const element = id => document.getElementById(id);

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), character => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).json();
}

// The recording: functions, frames, a tree of call stacks, and samples of each interval of time.
class Profile {
  constructor(data) {
    this.title = data.title;
    this.facts = data.facts;
    this.notes = data.notes;
    this.events = data.events;
    this.threads = data.threads;
    this.functions = data.functions;  // {kind: [], name: [], file: []}
    this.frames = data.frames;        // {function: [], line: []}
    this.cell = data.cell;            // seconds
    this.compares = data.compares;
    this.frame = data.nodes.frame;
    this.caller = data.nodes.back.map((back, node) => node - back);
    this.uses = data.uses;            // keys of USE; '': a wait, or no function
    this.samples = data.samples;      // {cell, thread, event, stack, use, weight, old}
    let cell = 0;
    this.samples.cell = data.samples.cell.map(step => cell += step);
    this.cells = this.samples.cell.reduce((most, one, i) => this.samples.old[i] ? most : Math.max(most, one + 1), 0);
    const order = this.functions.name.map((_, i) => i);
    const names = this.functions.name;
    order.sort((a, b) => names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : a - b);
    this.rank = new Int32Array(order.length);
    order.forEach((id, position) => this.rank[id] = position);
  }

  threadName(index) {
    const {pid, tid, name} = this.threads[index];
    return `${name} ${pid === tid ? pid : `${pid}/${tid}`}`;
  }

  place(id, line) {
    const file = this.functions.file[id];
    return line > 0 ? `${file}:${line}` : file;
  }
}

// Merged call stacks of the samples that SETTINGS select. Nodes are numbers; node 0 is all of them.
class Tree {
  constructor(profile, settings, event) {
    this.profile = profile;
    this.settings = settings;
    this.unit = profile.events[event].unit;
    this.function = [-1];  // below 0: a thread, -2 - its index
    this.line = [0];
    this.parent = [-1];
    this.depth = [0];
    this.self = [0];
    this.old = [0];
    this.uses = profile.uses.map(() => []);  // by use and node: of `self`, then of `total`
    this.known = new Map();
    this.collect(event);
    this.sum();
    this.lay();
  }

  child(parent, id, line) {
    const key = parent * (this.profile.functions.name.length + this.profile.threads.length + 2) +
        (id >= 0 ? id : this.profile.functions.name.length - id);
    let node = this.known.get(key);
    if (node === undefined) {
      node = this.function.length;
      this.known.set(key, node);
      this.function.push(id);
      this.line.push(line);
      this.parent.push(parent);
      this.depth.push(this.depth[parent] + 1);
      this.self.push(0);
      this.old.push(0);
    }
    return node;
  }

  shows(kind) {
    const mode = this.settings.mode;
    return mode === 'mixed' || kind === 3 || (mode === 'python') === (kind === 0);
  }

  collect(event) {
    const {profile, settings} = this;
    const {cell, thread, event: events, stack, use, weight, old} = profile.samples;
    const apart = settings.grouping === 'threads';
    const wanted = settings.thread;
    const shown = new Map();  // the tree's node of each stack, for each thread
    const roots = new Map();
    for (let i = 0; i < stack.length; ++i) {
      if (events[i] !== event || (wanted >= 0 && thread[i] !== wanted)) {
        continue;
      }
      if (settings.from !== null && !old[i] && (cell[i] < settings.from || cell[i] >= settings.to)) {
        continue;
      }
      const group = apart ? thread[i] : -1;
      let nodes = shown.get(group);
      if (nodes === undefined) {
        nodes = new Map([[0, apart ? this.child(0, -2 - group, 0) : 0]]);
        shown.set(group, nodes);
      }
      const node = this.show(nodes, stack[i]);
      (old[i] ? this.old : this.self)[node] += weight[i];
      if (!old[i]) {
        this.uses[use[i]][node] = (this.uses[use[i]][node] ?? 0) + weight[i];
      }
    }
  }

  show(nodes, stack) {
    const {caller, frame, frames, functions} = this.profile;
    const path = [];
    let known = stack;
    while (!nodes.has(known)) {
      path.push(known);
      known = caller[known];
    }
    let node = nodes.get(known);
    while (path.length > 0) {
      const next = path.pop();
      const id = frames.function[frame[next]];
      if (this.shows(functions.kind[id])) {
        node = this.child(node, id, frames.line[frame[next]]);
      }
      nodes.set(next, node);
    }
    return node;
  }

  sum() {
    this.total = Float64Array.from(this.self);
    this.before = Float64Array.from(this.old);
    this.height = 1;
    this.uses = this.uses.map(one => Float64Array.from(this.self, (_, node) => one[node] ?? 0));
    for (let node = this.function.length - 1; node > 0; --node) {
      this.total[this.parent[node]] += this.total[node];
      this.before[this.parent[node]] += this.before[node];
      for (const use of this.uses) {
        use[this.parent[node]] += use[node];
      }
      this.height = Math.max(this.height, this.depth[node] + 1);
    }
  }

  rank(node) {
    const id = this.function[node];
    return id >= 0 ? this.profile.rank[id] : id;
  }

  // Where each function begins, in units of weight, and the callees of each one by name.
  lay() {
    const count = this.function.length;
    this.begin = new Float64Array(count);
    this.children = Array.from({length: count}, () => null);
    for (let node = 1; node < count; ++node) {
      (this.children[this.parent[node]] ??= []).push(node);
    }
    for (let node = 0; node < count; ++node) {
      let begin = this.begin[node];
      for (const child of this.children[node]?.sort((a, b) => this.rank(a) - this.rank(b)) ?? []) {
        this.begin[child] = begin;
        begin += this.total[child];
      }
    }
  }

  name(node) {
    const id = this.function[node];
    return id >= 0 ? this.profile.functions.name[id] : id === -1 ? 'all' : this.profile.threadName(-2 - id);
  }

  kind(node) {
    const id = this.function[node];
    return id >= 0 ? this.profile.functions.kind[id] : 4;
  }

  amount(weight) {
    if (this.unit === 'bytes') {
      return weight >= 1e6 ? `${(weight / 1e6).toFixed(1)} MB` : `${(weight / 1e3).toFixed(0)} kB`;
    }
    if (this.unit !== 'ns') {
      return `${weight.toLocaleString('en')} ${weight === 1 ? 'sample' : 'samples'}`;
    }
    const [factor, unit, digits] = weight >= 1e9 ? [1e9, 's', 2] : weight >= 1e6 ? [1e6, 'ms', 1] : [1e3, 'µs', 0];
    return `${(weight / factor).toFixed(digits)} ${unit}`;
  }

  share(weight, whole = this.total[0]) {
    return whole > 0 ? `${(100 * weight / whole).toFixed(1)} %` : '–';
  }

  // What NODE's time was used for: "Python 61.2 %, C 38.8 %"; empty: waits, or bytes.
  division(node) {
    const {uses} = this.profile;
    const parts = Object.keys(USE).filter(use => (this.uses[uses.indexOf(use)]?.[node] ?? 0) > 0);
    return this.unit !== 'samples' ? '' : parts.map(
        use => `${USE[use]} ${this.share(this.uses[uses.indexOf(use)][node], this.total[node])}`).join(', ');
  }

  // How much NODE has grown since the older recording: of the whole, -1 to 1.
  growth(node) {
    const whole = this.total[0];
    const before = this.before[0];
    if (this.settings.comparison === 'relative') {
      return (whole > 0 ? this.total[node] / whole : 0) - (before > 0 ? this.before[node] / before : 0);
    }
    return (this.total[node] - this.before[node]) / Math.max(whole, before, 1);
  }

  describe(node) {
    const id = this.function[node];
    const lines = [this.name(node)];
    if (id >= 0) {
      lines.push(`${this.profile.place(id, this.line[node])} (${KIND[this.kind(node)]})`);
    }
    lines.push(`total: ${this.amount(this.total[node])}, ${this.share(this.total[node])}`);
    lines.push(`self: ${this.amount(this.self[node])}, ${this.share(this.self[node])}`);
    const division = this.division(node);
    if (division) {
      lines.push(`of the total: ${division}`);
    }
    if (this.profile.compares) {
      const growth = 100 * this.growth(node);
      lines.push(`before: ${this.amount(this.before[node])}, ${this.share(this.before[node], this.before[0])}` +
                 ` (${growth < 0 ? '−' : '+'}${Math.abs(growth).toFixed(1)} points)`);
    }
    return lines.join('\n');
  }
}

// A graph of one event.
class Pane {
  constructor(page, event) {
    this.page = page;
    this.event = event;
    this.zoomed = 0;
    this.selected = 0;
    this.box = document.createElement('section');
    this.box.className = 'pane';
    this.heading = document.createElement('h2');
    this.scroll = document.createElement('div');
    this.scroll.className = 'scroll';
    this.scroll.tabIndex = 0;
    this.space = document.createElement('div');
    this.canvas = document.createElement('canvas');
    this.canvas.setAttribute('role', 'img');
    this.space.append(this.canvas);  // as high as the graph; the canvas stays in view
    this.scroll.append(this.space);
    this.box.append(this.heading, this.scroll);
    this.scroll.addEventListener('scroll', () => this.draw());
    this.canvas.addEventListener('mousemove', moved => this.page.point(this, this.at(moved), moved));
    this.canvas.addEventListener('mouseleave', () => this.page.point(this, -1, null));
    this.canvas.addEventListener('click', clicked => {
      const node = this.at(clicked);
      if (node >= 0) {
        this.zoom(node);
      }
    });
    this.scroll.addEventListener('focus', () => this.page.focused = this);
  }

  build() {
    // A zoom outlives new settings if its functions are still there.
    const path = this.tree ? this.names(this.zoomed) : [];
    this.tree = new Tree(this.page.profile, this.page.settings, this.event);
    this.zoomed = 0;
    for (const name of path) {
      const next = this.tree.children[this.zoomed]?.find(child => this.tree.name(child) === name);
      if (next === undefined) {
        break;
      }
      this.zoomed = next;
    }
    this.selected = this.zoomed;
    this.search();
  }

  names(node) {
    const path = [];
    for (; node > 0; node = this.tree.parent[node]) {
      path.unshift(this.tree.name(node));
    }
    return path;
  }

  search() {
    const pattern = this.page.pattern;
    const {tree} = this;
    this.found = null;
    this.foundWeight = 0;
    if (pattern) {
      const matches = tree.profile.functions.name.map(name => pattern.test(name));
      this.found = new Uint8Array(tree.function.length);  // 2: a caller matches, too
      for (let node = 1; node < this.found.length; ++node) {
        const id = tree.function[node];
        const match = id >= 0 ? matches[id] : pattern.test(tree.name(node));
        const above = this.found[tree.parent[node]];
        this.found[node] = (match ? 1 : 0) | (above !== 0 ? 2 : 0);
        this.foundWeight += match && above === 0 ? tree.total[node] : 0;
      }
    }
    const event = tree.profile.events[this.event];
    const division = tree.division(0);
    this.heading.textContent = `${event.label}: ${tree.amount(tree.total[0])}` + (division ? ` · ${division}` : '') +
        (pattern ? ` · matched: ${tree.share(this.foundWeight)}` : '');
  }

  resize(settle = false) {
    const scale = window.devicePixelRatio || 1;
    this.width = this.scroll.clientWidth;
    this.shownHeight = this.scroll.clientHeight;
    this.wholeHeight = Math.max(this.tree.height * kRow + 2, this.shownHeight);
    this.space.style.height = `${this.wholeHeight}px`;
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.shownHeight}px`;
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.shownHeight * scale);
    this.context = this.canvas.getContext('2d');
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    if (settle) {
      this.scroll.scrollTop = this.page.settings.direction === 'flame' ? this.wholeHeight : 0;
    }
    this.draw();
  }

  top(depth) {
    const y = this.page.settings.direction === 'flame' ? this.wholeHeight - (depth + 1) * kRow - 1 : depth * kRow + 1;
    return y - this.scroll.scrollTop;
  }

  // Calls VISIT(node, x, width) for what is visible: the zoomed function, its callers, and all below it.
  each(visit) {
    const {tree, zoomed, width} = this;
    for (let node = tree.parent[zoomed]; node >= 0; node = tree.parent[node]) {
      visit(node, 0, width);
    }
    const scale = tree.total[zoomed] > 0 ? width / tree.total[zoomed] : 0;
    const left = [zoomed];
    while (left.length > 0) {
      const node = left.pop();
      visit(node, (tree.begin[node] - tree.begin[zoomed]) * scale, tree.total[node] * scale);
      for (const child of tree.children[node] ?? []) {
        if (tree.total[child] * scale >= kLeast) {
          left.push(child);
        }
      }
    }
  }

  colour(node) {
    const {tree, page} = this;
    const dark = page.dark;
    if (this.found?.[node] & 1) {
      return dark ? 'hsl(305 70% 45%)' : 'hsl(305 90% 70%)';
    }
    if (tree.profile.compares) {
      const growth = tree.growth(node);
      const strength = Math.min(1, Math.sqrt(Math.abs(growth) * 4));
      if (Math.abs(growth) < 0.0005) {
        return dark ? 'hsl(0 0% 32%)' : 'hsl(0 0% 90%)';
      }
      return `hsl(${growth > 0 ? 2 : 215} ${40 + 50 * strength}% ${dark ? 30 + 15 * strength : 90 - 35 * strength}%)`;
    }
    const kind = tree.kind(node);
    let hash = 0;
    for (const character of tree.name(node)) {
      hash = (hash * 31 + character.charCodeAt(0)) & 0xffff;
    }
    const shade = (hash % 12) - 6;
    const saturation = kind === 3 || tree.function[node] < 0 ? 12 : 65;
    return `hsl(${HUE[kind] + (hash >> 8) % 10} ${saturation}% ${(dark ? 34 : 72) + shade}%)`;
  }

  draw() {
    const {context, tree, width, shownHeight} = this;
    const dark = this.page.dark;
    context.clearRect(0, 0, width, shownHeight);
    context.font = '12px system-ui, sans-serif';
    context.textBaseline = 'middle';
    this.each((node, x, w) => {
      const y = this.top(tree.depth[node]);
      if (y < -kRow || y > shownHeight) {
        return;
      }
      const callerOfZoomed = tree.depth[node] < tree.depth[this.zoomed];
      context.globalAlpha = callerOfZoomed ? 0.55 : 1;
      context.fillStyle = this.colour(node);
      context.fillRect(x, y, Math.max(w - 0.6, 0.5), kRow - 1);
      if (node === this.selected && node !== 0) {
        context.strokeStyle = dark ? '#fff' : '#000';
        context.strokeRect(x + 0.5, y + 0.5, Math.max(w - 1.6, 1), kRow - 2);
      }
      if (w > 24) {
        context.fillStyle = dark ? '#f4f4f4' : '#111';
        context.fillText(this.fit(tree.name(node), w - 8), x + 4, y + kRow / 2);
      }
    });
    context.globalAlpha = 1;
  }

  fit(text, width) {
    const size = 6.2;  // of a usual character
    if (text.length * size < width && this.context.measureText(text).width <= width) {
      return text;
    }
    let count = Math.min(text.length, Math.ceil(width / 3));
    while (count > 0 && this.context.measureText(`${text.slice(0, count)}…`).width > width) {
      count -= Math.max(1, count >> 3);
    }
    return count > 1 ? `${text.slice(0, count)}…` : '';
  }

  at(mouse) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [mouse.clientX - box.left, mouse.clientY - box.top];
    let result = -1;
    this.each((node, begin, width) => {
      const top = this.top(this.tree.depth[node]);
      if (y >= top && y < top + kRow && x >= begin && x < begin + width) {
        result = node;
      }
    });
    return result;
  }

  // Where NODE is drawn, in the window's pixels; null: it is not.
  where(node) {
    let result = null;
    const box = this.canvas.getBoundingClientRect();
    this.each((each, x, width) => {
      if (each === node) {
        result = {x: box.left + x + width / 2, y: box.top + this.top(this.tree.depth[node]) + kRow / 2, width};
      }
    });
    return result;
  }

  zoom(node) {
    this.zoomed = node;
    this.select(node);
  }

  select(node) {
    this.selected = node;
    const top = this.top(this.tree.depth[node]);
    if (top < 0 || top + kRow > this.shownHeight) {
      this.scroll.scrollTop += top - this.shownHeight / 2;
    }
    this.page.tell(this, node);
    this.draw();
  }

  // Moves the selection: to a caller, to the largest callee, or to a neighbour.
  step(key) {
    const {tree, selected} = this;
    const down = this.page.settings.direction === 'flame' ? 'ArrowDown' : 'ArrowUp';
    if (key === 'ArrowUp' || key === 'ArrowDown') {
      const next = key === down ? tree.parent[selected]
          : (tree.children[selected] ?? []).reduce((best, child) => best < 0 || tree.total[child] > tree.total[best] ? child : best, -1);
      if (next >= 0) {
        this.select(next);
      }
      return;
    }
    const neighbours = tree.children[tree.parent[selected]] ?? [];
    const next = neighbours[neighbours.indexOf(selected) + (key === 'ArrowLeft' ? -1 : 1)];
    if (next !== undefined) {
      this.select(next);
    }
  }
}

// Samples by time: a column for each second, from top to bottom in time.
class HeatMap {
  constructor(page) {
    this.page = page;
    this.canvas = element('heatmap');
    this.first = null;
    this.columns = Math.ceil(page.profile.cells / kCells);
    element('heat').hidden = this.columns < 2;
    this.canvas.addEventListener('mousedown', pressed => this.first = this.at(pressed));
    this.canvas.addEventListener('mousemove', moved => this.hover(moved));
    this.canvas.addEventListener('mouseleave', () => page.point(null, -1, null));
    window.addEventListener('mouseup', released => this.choose(released));
    this.canvas.addEventListener('keydown', pressed => this.step(pressed));
  }

  count() {
    const {profile} = this.page;
    const {cell, event, weight, old, thread} = profile.samples;
    const events = this.page.panes.map(pane => pane.event);
    const wanted = this.page.settings.thread;
    this.heat = new Float64Array(this.columns * kCells);
    const counts = events.filter(one => profile.events[one].unit !== 'ns');
    const counted = counts.length > 0 ? counts : events;
    for (let i = 0; i < cell.length; ++i) {
      if (!old[i] && counted.includes(event[i]) && (wanted < 0 || thread[i] === wanted)) {
        this.heat[cell[i]] += weight[i];
      }
    }
    this.most = this.heat.reduce((most, one) => Math.max(most, one), 0);
  }

  draw() {
    if (this.columns < 2) {
      return;
    }
    const scale = window.devicePixelRatio || 1;
    const {canvas} = this;
    canvas.width = Math.round(canvas.clientWidth * scale);
    canvas.height = Math.round(canvas.clientHeight * scale);
    const context = canvas.getContext('2d');
    const [w, h] = [canvas.width / this.columns, canvas.height / kCells];
    const {from, to} = this.page.settings;
    for (let index = 0; index < this.heat.length; ++index) {
      const strength = this.most > 0 ? this.heat[index] / this.most : 0;
      const outside = from !== null && (index < from || index >= to);
      const light = this.page.dark ? 12 + 48 * strength : 97 - 50 * strength;
      context.fillStyle = `hsl(${outside ? 0 : 12} ${outside ? 0 : 85}% ${light}%)`;
      const [x, y] = [Math.floor(Math.floor(index / kCells) * w), Math.floor((index % kCells) * h)];
      context.fillRect(x, y, Math.ceil(w) - (w > 6 ? 1 : 0), Math.ceil(h));
    }
  }

  at(mouse) {
    const box = this.canvas.getBoundingClientRect();
    const limit = (value, most) => Math.max(0, Math.min(most - 1, Math.floor(value)));
    const column = limit((mouse.clientX - box.left) / box.width * this.columns, this.columns);
    return {column, cell: column * kCells + limit((mouse.clientY - box.top) / box.height * kCells, kCells)};
  }

  choose(mouse) {
    if (this.first === null) {
      return;
    }
    const [first, last] = [this.first, this.at(mouse)];
    this.first = null;
    const one = first.cell === last.cell;
    const cells = [first.cell, last.cell].sort((a, b) => a - b);
    this.page.select(one ? first.column * kCells : cells[0], one ? (first.column + 1) * kCells : cells[1] + 1);
  }

  step(pressed) {
    const {from} = this.page.settings;
    const step = {ArrowLeft: -1, ArrowRight: 1}[pressed.key];
    if (step !== undefined) {
      const column = from === null ? 0 : Math.floor(from / kCells) + step;
      const next = Math.max(0, Math.min(this.columns - 1, column));
      this.page.select(next * kCells, (next + 1) * kCells);
      pressed.stopPropagation();
      pressed.preventDefault();
    }
  }

  hover(mouse) {
    const {cell} = this.at(mouse);
    const seconds = cell * this.page.profile.cell;
    const unit = this.page.panes.every(pane => pane.tree.unit === 'ns') ? ' waited' : '';
    this.page.point(null, -1, mouse, `${seconds.toFixed(2)} s: ${this.page.panes[0].tree.amount(this.heat[cell])}${unit}`);
  }
}

class Page {
  constructor(profile) {
    this.profile = profile;
    this.settings = {
      mode: 'mixed', grouping: 'merged', thread: -1, event: '0', direction: 'flame', comparison: 'relative',
      from: null, to: null,
    };
    this.pattern = null;
    this.dark = matchMedia('(prefers-color-scheme: dark)').matches;
    this.panes = [];
    this.describe();
    this.heatMap = new HeatMap(this);
    this.connect();
    this.choose({});
  }

  describe() {
    const {profile} = this;
    document.title = `${profile.title} – flame graph`;
    element('title').textContent = profile.title;
    element('facts').textContent = profile.facts;
    element('notes').hidden = profile.notes.length === 0;
    for (const note of profile.notes) {
      element('notes').querySelector('ul').append(Object.assign(document.createElement('li'), {textContent: note}));
    }
    const threads = element('thread');
    threads.append(new Option('All threads', '-1'));
    profile.threads.forEach((_, index) => threads.append(new Option(profile.threadName(index), index)));
    const add = (label, value, title) => {
      const button = Object.assign(document.createElement('button'), {textContent: label, title});
      button.dataset.value = value;
      element('event').append(button);
    };
    profile.events.forEach((event, index) => add(event.label, String(index), event.name));
    if (profile.events.length > 1) {
      add('Side by side', 'all', 'All events next to each other');
    }
    element('event').hidden = profile.events.length < 2;
    element('comparison').hidden = !profile.compares;
  }

  connect() {
    for (const group of document.querySelectorAll('.choice')) {
      group.addEventListener('click', clicked => {
        const value = clicked.target.dataset?.value;
        if (value !== undefined) {
          this.choose({[group.id]: value});
        }
      });
    }
    element('thread').addEventListener('change', changed => this.choose({thread: Number(changed.target.value)}));
    element('search').addEventListener('input', () => this.search());
    element('reset').addEventListener('click', () => this.reset());
    element('theme').addEventListener('click', () => this.toggleTheme());
    element('help').addEventListener('click', () => element('keys').showModal());
    element('keys').addEventListener('click', () => element('keys').close());
    window.addEventListener('resize', () => this.draw());
    window.addEventListener('keydown', pressed => this.press(pressed));
  }

  choose(change) {
    Object.assign(this.settings, change);
    const {settings, profile} = this;
    const events = settings.event === 'all' ? profile.events.map((_, index) => index) : [Number(settings.event)];
    if (events.join() !== this.panes.map(pane => pane.event).join()) {
      this.panes = events.map(event => new Pane(this, event));
      this.focused = this.panes[0];
      element('panes').replaceChildren(...this.panes.map(pane => pane.box));
    }
    for (const group of document.querySelectorAll('.choice')) {
      for (const button of group.querySelectorAll('button')) {
        button.setAttribute('aria-pressed', String(button.dataset.value === settings[group.id]));
      }
    }
    document.documentElement.classList.toggle('dark', this.dark);
    const range = (from, to) => `${(from * profile.cell).toFixed(2)} s to ${(to * profile.cell).toFixed(2)} s`;
    element('range').textContent = settings.from === null ? '' : range(settings.from, settings.to);
    this.panes.forEach(pane => pane.build());
    this.heatMap.count();
    this.listElided();
    this.heatMap.draw();
    this.panes.forEach(pane => pane.resize(true));
    this.tell(this.panes[0], this.panes[0].zoomed);
  }

  // Functions that only the older recording has.
  listElided() {
    const {profile} = this;
    element('elided').hidden = !profile.compares;
    if (!profile.compares) {
      return;
    }
    const now = new Set();
    const before = new Map();
    for (const {tree} of this.panes) {
      tree.function.forEach((id, node) => {
        if (id >= 0 && tree.total[node] > 0) {
          now.add(id);
        } else if (id >= 0) {
          before.set(id, (before.get(id) ?? 0) + tree.before[node]);
        }
      });
    }
    const {tree} = this.panes[0];
    const gone = [...before].filter(([id]) => !now.has(id)).sort((a, b) => b[1] - a[1]);
    element('elided').querySelector('summary').textContent =
        `${gone.length} ${gone.length === 1 ? 'function is' : 'functions are'} only in the older recording`;
    element('elided').querySelector('tbody').replaceChildren(...gone.slice(0, 500).map(([id, weight]) => {
      const row = document.createElement('tr');
      for (const text of [tree.amount(weight), profile.functions.name[id], profile.place(id, 0)]) {
        row.append(Object.assign(document.createElement('td'), {textContent: text}));
      }
      return row;
    }));
  }

  draw() {
    this.panes.forEach(pane => pane.resize());
    this.heatMap.draw();
  }

  search() {
    const text = element('search').value;
    this.pattern = null;
    let invalid = false;
    if (text !== '') {
      try {
        this.pattern = new RegExp(text, 'i');
      } catch {
        invalid = true;
        this.pattern = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i');
      }
    }
    element('search').classList.toggle('invalid', invalid);
    for (const pane of this.panes) {
      pane.search();
      pane.draw();
    }
  }

  select(from, to) {
    this.choose({from, to});
  }

  reset() {
    element('search').value = '';
    this.search();
    this.panes.forEach(pane => pane.zoomed = 0);
    this.choose({from: null, to: null});
  }

  // Esc: undoes one thing.
  undo() {
    if (this.pattern) {
      element('search').value = '';
      this.search();
    } else if (this.settings.from !== null) {
      this.choose({from: null, to: null});
    } else {
      this.panes.forEach(pane => pane.zoom(0));
    }
  }

  toggleTheme() {
    this.dark = !this.dark;
    document.documentElement.classList.toggle('dark', this.dark);
    this.draw();
  }

  press(pressed) {
    if (pressed.key === 'Escape') {
      this.undo();
      element('search').blur();
      return;
    }
    if (pressed.target === element('search') || pressed.ctrlKey || pressed.metaKey || pressed.altKey) {
      return;
    }
    const {settings, focused} = this;
    const actions = {
      '/': () => element('search').focus(),
      '1': () => this.choose({mode: 'mixed'}),
      '2': () => this.choose({mode: 'python'}),
      '3': () => this.choose({mode: 'native'}),
      't': () => this.choose({grouping: settings.grouping === 'merged' ? 'threads' : 'merged'}),
      'i': () => this.choose({direction: settings.direction === 'flame' ? 'icicle' : 'flame'}),
      'd': () => this.toggleTheme(),
      '?': () => element('keys').showModal(),
      'Enter': () => focused.zoom(focused.selected),
      'Backspace': () => focused.zoom(Math.max(0, focused.tree.parent[focused.zoomed])),
    };
    for (const key of ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight']) {
      actions[key] = () => focused.step(key);
    }
    const button = pressed.target instanceof HTMLButtonElement && pressed.key === 'Enter';
    const list = pressed.target instanceof HTMLSelectElement;
    if (!button && !list && Object.hasOwn(actions, pressed.key)) {
      actions[pressed.key]();
      pressed.preventDefault();
    }
  }

  tell(pane, node) {
    element('status').textContent = pane.tree.describe(node).replaceAll('\n', ' · ');
    pane.canvas.setAttribute('aria-label', element('status').textContent);
  }

  point(pane, node, mouse, text = null) {
    const tooltip = element('tooltip');
    tooltip.hidden = node < 0 && text === null;
    if (tooltip.hidden) {
      return;
    }
    tooltip.textContent = text ?? pane.tree.describe(node);
    const {offsetWidth: width, offsetHeight: height} = tooltip;
    tooltip.style.left = `${Math.max(0, Math.min(mouse.clientX + 12, innerWidth - width - 8))}px`;
    tooltip.style.top = `${Math.max(0, mouse.clientY + 16 + height > innerHeight ? mouse.clientY - height - 8 : mouse.clientY + 16)}px`;
    if (pane !== null) {
      this.tell(pane, node);
    }
  }
}

inflate(element('data').textContent)
    .then(data => {
      window.page = new Page(new Profile(data));
      document.documentElement.dataset.ready = 'true';
    })
    .catch(error => element('status').textContent = `This page cannot be drawn: ${error.message}`);
