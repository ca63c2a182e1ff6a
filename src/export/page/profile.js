'use strict';
// Draws the profile in #data: columns of numbers, deflated, in base64 (src/export/flamegraph.cpp).
// The files of this folder are one script.

const KIND = ['python', 'native', 'kernel', 'mark', 'thread'];
const PART = {program: 0, byteCode: 2, nameless: 3, greenlet: 4};  // report::Part; 1: nothing to show

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
    this.lead = data.lead;
    this.sources = data.sources;      // {file, text, note}
    this.notes = data.notes;
    this.events = data.events;        // {name, label, unit: samples, bytes, ns (waits) or calls (also ns), seconds: of a sample, before: of an older one; 0: no time}
    this.threads = data.threads;
    this.groups = [];                 // of threads whose names differ only in digits: {name, count, first}
    this.groupOf = Profile.group(this.threads, this.groups);  // by thread
    this.functions = data.functions;  // {kind: [], part: [], name: [], file: []}
    this.frames = data.frames;        // {function: [], line: []}
    this.cell = data.cell;            // seconds
    this.compares = data.compares;
    this.frame = data.nodes.frame;
    this.caller = data.nodes.back.map((back, node) => node - back);
    this.uses = data.uses;            // keys of USE (tree.js); '': a wait, or no function
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

  static group(threads, groups) {
    const known = new Map();
    return threads.map(({name}, thread) => {
      const pattern = name.replace(/\d+/g, '*');
      const group = known.get(pattern) ?? groups.push({name: pattern, count: 0, first: thread}) - 1;
      known.set(pattern, group);
      ++groups[group].count;
      return group;
    });
  }

  // INDEX: of a thread; from the number of threads on: of a group of threads.
  threadName(index) {
    const group = this.groups[index - this.threads.length];
    if (group?.count > 1) {
      return `${group.name} (${group.count} threads)`;
    }
    const {pid, tid, name} = this.threads[group?.first ?? index];
    return `${name} ${pid === tid ? pid : `${pid}/${tid}`}`;
  }

  // WANTED: as in threadName(); -1: all threads.
  isOf(thread, wanted) {
    return wanted < 0 || thread === wanted || this.groupOf[thread] === wanted - this.threads.length;
  }

  place(id, line) {
    const file = this.functions.file[id];
    return line > 0 ? `${file}:${line}` : file;
  }

  // Without the spaces around it; empty: the page does not have it.
  sourceLine(id, line) {
    this.lines ??= new Map(this.sources.map(({file, text}) => [file, text.split('\n')]));
    return line > 0 ? (this.lines.get(this.functions.file[id])?.[line - 1] ?? '').trim() : '';
  }

  isNameless(id) {
    return this.functions.kind[id] === 1 && this.functions.name[id].startsWith('[') && this.functions.file[id] !== '';
  }

  // For each node of a stack, the nodes of: the innermost Python function, the C function that it
  // called, and what may be such a function if it called one. 0: none.
  get calls() {
    if (this.knownCalls === undefined) {
      const {kind, part} = this.functions;
      const count = this.frame.length;
      const [python, called, possible] = [new Uint32Array(count), new Uint32Array(count), new Uint32Array(count)];
      for (let node = 1; node < count; ++node) {
        const id = this.frames.function[this.frame[node]];
        const caller = this.caller[node];
        if (part[id] === PART.greenlet) {
          continue;  // its parents do not run
        }
        if (kind[id] === 0 || (kind[id] === 3 && part[id] === PART.program)) {  // "[truncated: ...]" stands for some
          python[node] = node;
          continue;
        }
        [python[node], called[node], possible[node]] = [python[caller], called[caller], possible[caller]];
        if (kind[id] === 1 && python[node] !== 0) {
          called[node] ||= part[id] === PART.program ? node : 0;
          possible[node] ||= part[id] === PART.byteCode || part[id] === PART.nameless ? node : 0;
        }
      }
      this.knownCalls = {python, called, possible};
    }
    return this.knownCalls;
  }
}
