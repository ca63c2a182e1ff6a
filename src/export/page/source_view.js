// The source of one file, with what its lines take.
class SourceView {
  constructor(page) {
    this.page = page;
    this.box = element('source');
    this.files = element('file');
    this.lines = this.box.querySelector('tbody');
    this.map = this.box.querySelector('canvas');
    this.scroll = this.box.querySelector('.lines');
    this.shown = null;  // the index of the source in the table
    const {sources} = page.profile;
    sources.forEach((source, index) => this.files.append(new Option(source.file, index)));
    this.files.addEventListener('change', () => this.build());
    this.scroll.addEventListener('scroll', () => this.drawMap());
    this.map.addEventListener('mousedown', pressed => this.jump(pressed));
    new ResizeObserver(() => this.drawMap()).observe(this.scroll);
  }

  // Shows the function of NODE in TREE, if its source is there.
  follow(tree, node) {
    const id = tree.function[node];
    const index = id < 0 ? -1 : this.page.profile.sources.findIndex(one => one.file === this.page.profile.functions.file[id]);
    if (this.box.hidden || index < 0 || tree.line(node) === 0) {
      return;
    }
    this.files.value = String(index);
    this.build();
    const line = this.lines.children[tree.line(node) - 1];
    this.scroll.scrollTop = line ? line.offsetTop - this.scroll.clientHeight / 2 : 0;
  }

  // By line of FILE: what EVENT's samples took in it, and in what it called.
  weigh(file, event) {
    const {profile, settings} = this.page;
    const {samples, caller, frame, frames, functions} = profile;
    const weights = new Map();  // of stacks
    for (let i = 0; i < samples.stack.length; ++i) {
      const outside = settings.from !== null && (samples.cell[i] < settings.from || samples.cell[i] >= settings.to);
      if (samples.event[i] === event && !samples.old[i] && !outside && profile.isOf(samples.thread[i], settings.thread)) {
        weights.set(samples.stack[i], (weights.get(samples.stack[i]) ?? 0) + samples.weight[i]);
      }
    }
    const [self, total] = [new Map(), new Map()];
    let whole = 0;
    for (const [stack, weight] of weights) {
      whole += weight;
      const seen = new Set();
      let innermost = true;
      for (let node = stack; node !== 0; node = caller[node]) {
        const id = frames.function[frame[node]];
        if (functions.kind[id] !== 0) {
          continue;
        }
        const line = frames.line[frame[node]];
        if (functions.file[id] === file && line > 0) {
          if (innermost) {
            self.set(line, (self.get(line) ?? 0) + weight);
          }
          if (!seen.has(line)) {
            seen.add(line);
            total.set(line, (total.get(line) ?? 0) + weight);
          }
        }
        innermost = false;
      }
    }
    return {self, total, whole};
  }

  build() {
    if (this.box.hidden || this.files.value === '') {
      return;
    }
    const {page} = this;
    const {profile} = page;
    const index = Number(this.files.value);
    const source = profile.sources[index];
    const {event} = page.panes[0];
    const {self, total, whole} = this.weigh(source.file, event);
    const waits = profile.events.findIndex(one => one.unit === 'ns');
    const waited = waits < 0 || waits === event ? new Map() : this.weigh(source.file, waits).total;
    if (this.shown !== index) {
      this.shown = index;
      this.lines.replaceChildren(...source.text.replace(/\n$/, '').split('\n').map((text, i) => {
        const row = document.createElement('tr');
        for (const content of ['', '', '', String(i + 1), text]) {
          row.append(Object.assign(document.createElement('td'), {textContent: content}));
        }
        return row;
      }));
      this.scroll.scrollTop = 0;
    }
    const share = weight => weight > 0 && whole > 0 ? (100 * weight / whole).toFixed(1) : '';
    this.heat = Array.from(this.lines.children, (row, i) => {
      const [its, all, wait] = [self, total, waited].map(weights => weights.get(i + 1) ?? 0);
      const [selfCell, totalCell, waitCell] = row.children;
      selfCell.textContent = share(its);
      totalCell.textContent = share(all);
      waitCell.textContent = wait > 0 ? (wait / 1e9).toFixed(2) : '';
      const strength = whole > 0 ? Math.max(its, all / 4) / whole : 0;
      row.style.background = strength > 0 ? this.colour(strength) : '';
      return strength;
    });
    this.box.querySelector('p').textContent = source.note;
    this.drawMap();
  }

  colour(strength) {
    const dim = Math.sqrt(strength);
    return this.page.dark ? `hsl(12 85% ${14 + 30 * dim}%)` : `hsl(12 90% ${97 - 35 * dim}%)`;
  }

  // All lines from top to bottom, and which of them are in view.
  drawMap() {
    if (this.box.hidden || !this.heat) {
      return;
    }
    const scale = window.devicePixelRatio || 1;
    const {map, scroll, heat} = this;
    map.width = Math.round(map.clientWidth * scale);
    map.height = Math.round(map.clientHeight * scale);
    const context = map.getContext('2d');
    const height = map.height / Math.max(heat.length, 1);
    heat.forEach((strength, i) => {
      if (strength > 0) {
        context.fillStyle = `hsl(12 85% ${this.page.dark ? 30 + 30 * Math.sqrt(strength) : 80 - 35 * Math.sqrt(strength)}%)`;
        context.fillRect(0, Math.floor(i * height), map.width, Math.max(height, 2 * scale));
      }
    });
    context.strokeStyle = getComputedStyle(map).color;
    context.strokeRect(0.5, scroll.scrollTop / scroll.scrollHeight * map.height + 0.5, map.width - 1,
                       scroll.clientHeight / scroll.scrollHeight * map.height - 1);
  }

  jump(pressed) {
    const box = this.map.getBoundingClientRect();
    const place = (pressed.clientY - box.top) / box.height;
    this.scroll.scrollTop = place * this.scroll.scrollHeight - this.scroll.clientHeight / 2;
  }
}
