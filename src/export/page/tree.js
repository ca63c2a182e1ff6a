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
    this.function = [-1];  // below 0: a thread, or a group of them: -2 - its index, as Profile.threadName() has it
    this.lines = [];  // by node: pairs of a line and its weight
    this.parent = [-1];
    this.depth = [0];
    this.self = [0];
    this.old = [0];
    this.table = new Int32Array(1024);  // nodes by parent and function, open addressing; 0: free
    this.collect(event);
    this.sum();
    this.lay();
  }

  slot(parent, id) {
    const hash = Math.imul(parent, 0x9e3779b1) ^ Math.imul(id, 0x85ebca6b);
    const mask = this.table.length - 1;
    let slot = (hash ^ hash >>> 15) & mask;
    for (let node = this.table[slot]; node !== 0; node = this.table[slot]) {
      if (this.parent[node] === parent && this.function[node] === id) {
        break;
      }
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  child(parent, id) {
    const slot = this.slot(parent, id);
    if (this.table[slot] !== 0) {
      return this.table[slot];
    }
    const node = this.function.length;
    this.table[slot] = node;
    this.function.push(id);
    this.parent.push(parent);
    this.depth.push(this.depth[parent] + 1);
    this.self.push(0);
    this.old.push(0);
    if (2 * node > this.table.length) {
      this.table = new Int32Array(4 * this.table.length);
      for (let each = 1; each <= node; ++each) {
        this.table[this.slot(this.parent[each], this.function[each])] = each;
      }
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
    const apart = settings.grouping !== 'merged';
    const owner = settings.grouping === 'groups' ? profile.groupOf.map(group => profile.threads.length + group)
        : profile.threads.map((_, index) => index);
    const groups = new Map();  // samples
    for (let i = 0; i < stack.length; ++i) {
      const outside = settings.from !== null && !old[i] && (cell[i] < settings.from || cell[i] >= settings.to);
      if (events[i] === event && !outside && profile.isOf(thread[i], settings.thread)) {
        const group = apart ? owner[thread[i]] : -1;
        groups.get(group)?.push(i) ?? groups.set(group, [i]);
      }
    }
    this.nodeOf = new Int32Array(stack.length);  // by sample; -1: SETTINGS do not select it, or it is of an older recording
    this.nodeOf.fill(-1);
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
          this.nodeOf[i] = node;
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
    const path = [];
    let inner = python[stack];
    for (; nodes[inner] < 0; inner = python[caller[inner]]) {
      path.push(inner);
    }
    let node = nodes[inner];
    for (let i = path.length - 1; i >= 0; --i) {
      const next = path[i];
      const between = called[caller[next]];
      if (between !== 0) {
        node = this.child(node, frames.function[frame[between]]);
      }
      node = this.child(node, frames.function[frame[next]]);
      nodes[next] = node;
    }
    const innermost = called[stack] || (use === 'c' ? possible[stack] : 0);
    return innermost === 0 || use === 'python' || use === 'undecided' ? node : this.child(node, frames.function[frame[innermost]]);
  }

  sum() {
    this.total = Float64Array.from(this.self);
    this.before = Float64Array.from(this.old);
    this.height = 1;
    this.uses = this.profile.uses.map(() => new Float64Array(this.self.length));  // of `total`, by use and node
    const {use, weight} = this.profile.samples;
    for (let i = 0; i < use.length; ++i) {
      if (this.nodeOf[i] >= 0) {
        this.uses[use[i]][this.nodeOf[i]] += weight[i];
      }
    }
    this.nodeOf = null;
    for (let node = this.function.length - 1; node > 0; --node) {
      this.total[this.parent[node]] += this.total[node];
      this.before[this.parent[node]] += this.before[node];
      for (const use of this.uses) {
        use[this.parent[node]] += use[node];
      }
      this.height = Math.max(this.height, this.depth[node] + 1);
    }
  }

  // Where each function begins, in units of weight, and the callees of each one by name.
  lay() {
    const {rank, threads, groups} = this.profile;
    const least = -2 - threads.length - groups.length;
    const places = new Int32Array(rank.length - least + 1);  // a counting sort by name
    const key = id => (id >= 0 ? rank[id] : id) - least;
    for (const id of this.function) {
      ++places[key(id) + 1];
    }
    for (let i = 1; i < places.length; ++i) {
      places[i] += places[i - 1];
    }
    const count = this.function.length;
    const sorted = new Int32Array(count);
    for (let node = 0; node < count; ++node) {
      sorted[places[key(this.function[node])]++] = node;
    }
    this.first = new Int32Array(count);  // child; 0: none
    this.next = new Int32Array(count);   // sibling
    for (let i = count - 1; i >= 0; --i) {
      const node = sorted[i];
      if (node > 0) {
        this.next[node] = this.first[this.parent[node]];
        this.first[this.parent[node]] = node;
      }
    }
    this.begin = new Float64Array(count);
    for (let node = 0; node < count; ++node) {
      let begin = this.begin[node];
      for (let child = this.first[node]; child > 0; child = this.next[child]) {
        this.begin[child] = begin;
        begin += this.total[child];
      }
    }
  }

  children(node) {
    const result = [];
    for (let child = this.first[node] ?? 0; child > 0; child = this.next[child]) {
      result.push(child);
    }
    return result;
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

  // What a thread waits for: an innermost box of `--wall`.
  waits(node) {
    const id = this.function[node];
    return id >= 0 && this.profile.functions.file[id] === '[waits]';
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
      lines.push(`${this.profile.place(id, this.line(node))} (${this.waits(node) ? 'wait' : KIND[this.kind(node)]})`);
      const source = this.profile.sourceLine(id, this.line(node));
      if (source) {
        lines.push(source);
      }
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
