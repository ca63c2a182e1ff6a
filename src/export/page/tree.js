// What the threads did, as `why` divides; in this order.
const USE = {
  python: 'Python', c: 'C', undecided: 'Python or C', gc: 'GC', import: 'import', kernel: 'kernel', '': 'unknown',
};

// Merged call stacks of the samples that SETTINGS select. Nodes are numbers; node 0 is all of them.
class Tree {
  constructor(profile, settings, event) {
    this.profile = profile;
    this.settings = settings;
    this.unit = profile.events[event].unit;
    this.seconds = profile.events[event].seconds;
    this.secondsBefore = profile.events[event].before;
    this.function = [-1];  // below 0: a thread, -2 - its index
    this.lines = [];  // by node: pairs of a line and its weight
    this.parent = [-1];
    this.depth = [0];
    this.self = [0];
    this.old = [0];
    this.spent = [];  // of `self`: node, use, weight, one after the other
    this.known = new Map();
    this.collect(event);
    this.sum();
    this.lay();
  }

  child(parent, id) {
    const key = parent * (this.profile.functions.name.length + this.profile.threads.length + 2) +
        (id >= 0 ? id : this.profile.functions.name.length - id);
    let node = this.known.get(key);
    if (node === undefined) {
      node = this.function.length;
      this.known.set(key, node);
      this.function.push(id);
      this.parent.push(parent);
      this.depth.push(this.depth[parent] + 1);
      this.self.push(0);
      this.old.push(0);
    }
    return node;
  }

  shows(id) {
    const {mode} = this.settings;
    const kind = this.profile.functions.kind[id];
    if (mode === 'program') {
      return kind !== 3 || this.profile.functions.part[id] === PART.program;
    }
    return mode === 'mixed' || kind === 3 || (mode === 'python') === (kind === 0);
  }

  collect(event) {
    const {profile, settings} = this;
    const {cell, thread, event: events, stack, use, weight, old} = profile.samples;
    const apart = settings.grouping === 'threads';
    const groups = new Map();  // samples
    for (let i = 0; i < stack.length; ++i) {
      const outside = settings.from !== null && !old[i] && (cell[i] < settings.from || cell[i] >= settings.to);
      if (events[i] === event && !outside && (settings.thread < 0 || thread[i] === settings.thread)) {
        const group = apart ? thread[i] : -1;
        groups.get(group)?.push(i) ?? groups.set(group, [i]);
      }
    }
    const nodes = new Int32Array(profile.frame.length);  // of this tree, by stack; -1: not yet
    const weights = new Float64Array(nodes.length);      // of each stack
    const program = settings.mode === 'program';
    for (const [group, samples] of groups) {
      nodes.fill(-1);
      weights.fill(0);
      nodes[0] = apart ? this.child(0, -2 - group) : 0;
      for (const i of samples) {
        const node = program ? this.showProgram(nodes, stack[i], profile.uses[use[i]]) : this.show(nodes, stack[i]);
        (old[i] ? this.old : this.self)[node] += weight[i];
        if (!old[i]) {
          this.spent.push(node, use[i], weight[i]);
          weights[stack[i]] += weight[i];
        }
      }
      this.weighLines(nodes, weights);
    }
  }

  weighLines(nodes, weights) {
    const {caller, frame, frames} = this.profile;
    for (let stack = weights.length - 1; stack > 0; --stack) {
      if (weights[stack] === 0) {
        continue;
      }
      const line = frames.line[frame[stack]];
      const node = nodes[stack];
      if (line > 0 && node >= 0 && this.function[node] === frames.function[frame[stack]]) {
        const lines = this.lines[node];
        const same = lines?.findIndex(one => one[0] === line) ?? -1;
        if (lines === undefined) {
          this.lines[node] = [[line, weights[stack]]];
        } else if (same < 0) {
          lines.push([line, weights[stack]]);
        } else {
          lines[same][1] += weights[stack];
        }
      }
      weights[caller[stack]] += weights[stack];
    }
  }

  // The line that takes most of NODE; 0: unknown.
  line(node) {
    return (this.lines[node] ?? []).reduce((most, one) => one[1] > most[1] ? one : most, [0, 0])[0];
  }

  show(nodes, stack) {
    const {caller, frame, frames, functions} = this.profile;
    const path = [];
    let known = stack;
    while (nodes[known] < 0) {
      path.push(known);
      known = caller[known];
    }
    let node = nodes[known];
    while (path.length > 0) {
      const next = path.pop();
      const id = frames.function[frame[next]];
      const again = id === this.function[node] && this.profile.isNameless(id);
      if (this.shows(id) && !again) {
        node = this.child(node, id);
      }
      nodes[next] = node;
    }
    return node;
  }

  // The same without the interpreter: Python functions, and the C functions that they called. USE: of the sample.
  showProgram(nodes, stack, use) {
    const {caller, calls, frame, frames} = this.profile;
    const {python, called, possible} = calls;
    if (python[stack] === 0) {
      return this.show(nodes, stack);
    }
    const child = (node, inner) => this.child(node, frames.function[frame[inner]]);
    const path = [];
    let inner = python[stack];
    for (; nodes[inner] < 0; inner = python[caller[inner]]) {
      path.push(inner);
    }
    let node = nodes[inner];
    while (path.length > 0) {
      const next = path.pop();
      const between = called[caller[next]];
      node = child(between === 0 ? node : child(node, between), next);
      nodes[next] = node;
    }
    const innermost = called[stack] || (use === 'c' ? possible[stack] : 0);
    return innermost === 0 || use === 'python' || use === 'undecided' ? node : child(node, innermost);
  }

  sum() {
    this.total = Float64Array.from(this.self);
    this.before = Float64Array.from(this.old);
    this.height = 1;
    this.uses = this.profile.uses.map(() => new Float64Array(this.self.length));  // of `total`, by use and node
    for (let i = 0; i < this.spent.length; i += 3) {
      this.uses[this.spent[i + 1]][this.spent[i]] += this.spent[i + 2];
    }
    this.spent = null;
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
    const name = id >= 0 ? this.profile.functions.name[id] : id === -1 ? 'all' : this.profile.threadName(-2 - id);
    return id >= 0 && this.settings.mode === 'program' && this.profile.isNameless(id) ? `[C of ${name.slice(1)}` : name;
  }

  // In a box: "Handler.encode shop.py:30".
  label(node) {
    const id = this.function[node];
    if (this.kind(node) !== 0 || this.profile.functions.file[id] === '') {
      return this.name(node);
    }
    const [, file] = /((?:[^/]*\/)?__(?:init|main)__\.py|[^/]*)$/.exec(this.profile.functions.file[id]);
    const line = this.line(node);
    return `${this.name(node)} ${file}${line > 0 ? `:${line}` : ''}`;
  }

  kind(node) {
    const id = this.function[node];
    return id >= 0 ? this.profile.functions.kind[id] : 4;
  }

  amount(weight, seconds = this.seconds) {
    if (this.unit === 'bytes') {
      return weight >= 1e6 ? `${(weight / 1e6).toFixed(1)} MB` : `${(weight / 1e3).toFixed(0)} kB`;
    }
    if (this.unit !== 'ns' && this.unit !== 'calls') {
      const time = seconds > 0 ? `, ${Tree.time(weight * seconds * 1e9)}` : '';
      return `${weight.toLocaleString('en')} ${weight === 1 ? 'sample' : 'samples'}${time}`;
    }
    return Tree.time(weight);
  }

  static time(weight) {
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
      lines.push(`${this.profile.place(id, this.line(node))} (${KIND[this.kind(node)]})`);
    }
    lines.push(`total: ${this.amount(this.total[node])}, ${this.share(this.total[node])}`);
    lines.push(`self: ${this.amount(this.self[node])}, ${this.share(this.self[node])}`);
    const division = this.division(node);
    if (division) {
      lines.push(`of the total: ${division}`);
    }
    if (this.profile.compares) {
      const growth = 100 * this.growth(node);
      lines.push(`before: ${this.amount(this.before[node], this.secondsBefore)}, ${this.share(this.before[node], this.before[0])}` +
                 ` (${growth < 0 ? '−' : '+'}${Math.abs(growth).toFixed(1)} points)`);
    }
    return lines.join('\n');
  }
}
