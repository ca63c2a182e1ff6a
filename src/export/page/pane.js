const kRow = 18;     // pixels
const kLeast = 0.4;  // narrower functions are not drawn
// Hue, saturation and lightness of KIND and of waits; the text on them is dark. Two of them differ by 22 or more (CIEDE2000), by 11 or
// more for people who see no red, no green or no blue (simulated as in Machado et al. 2009).
const PAINT = [[216, 88, 64], [53, 92, 66], [16, 92, 54], [0, 0, 55], [132, 42, 71]];
const WAIT_PAINT = [320, 70, 82];

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
    new ResizeObserver(() => this.follow()).observe(this.scroll);
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
      const next = this.tree.children(this.zoomed).find(child => this.tree.name(child) === name);
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

  // The room for the graph may have changed.
  follow() {
    if (this.tree && (this.scroll.clientWidth !== this.width || this.scroll.clientHeight !== this.shownHeight)) {
      this.resize(this.scroll.scrollTop + this.shownHeight >= this.wholeHeight - kRow);
    }
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
      for (let child = tree.first[node]; child > 0; child = tree.next[child]) {
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
      return '#000';
    }
    if (tree.profile.compares) {
      const growth = tree.growth(node);
      const strength = Math.min(1, Math.sqrt(Math.abs(growth) * 4));
      if (Math.abs(growth) < 0.0005) {
        return dark ? 'hsl(0 0% 32%)' : 'hsl(0 0% 90%)';
      }
      return `hsl(${growth > 0 ? 2 : 215} ${40 + 50 * strength}% ${dark ? 30 + 15 * strength : 90 - 35 * strength}%)`;
    }
    const [hue, saturation, lightness] = tree.waits(node) ? WAIT_PAINT : PAINT[node === 0 ? 3 : tree.kind(node)];
    let hash = 0;
    for (const character of tree.name(node)) {
      hash = (hash * 31 + character.charCodeAt(0)) & 0xffff;
    }
    return `hsl(${hue + (hash >> 8) % 7} ${saturation}% ${lightness + hash % 7 - 3}%)`;
  }

  colourOfText(node) {
    return this.found?.[node] & 1 || (this.page.dark && this.tree.profile.compares) ? '#f4f4f4' : '#000';
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
        context.fillStyle = this.colourOfText(node);
        context.fillText(this.fit(tree.label(node), w - 8), x + 4, y + kRow / 2);
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
    this.page.sourceView.follow(this.tree, node);
    this.draw();
  }

  // Moves the selection: to a caller, to the largest callee, or to a neighbour.
  step(key) {
    const {tree, selected} = this;
    const down = this.page.settings.direction === 'flame' ? 'ArrowDown' : 'ArrowUp';
    if (key === 'ArrowUp' || key === 'ArrowDown') {
      const next = key === down ? tree.parent[selected]
          : tree.children(selected).reduce((best, child) => best < 0 || tree.total[child] > tree.total[best] ? child : best, -1);
      if (next >= 0) {
        this.select(next);
      }
      return;
    }
    const neighbours = tree.children(tree.parent[selected]);
    const next = neighbours[neighbours.indexOf(selected) + (key === 'ArrowLeft' ? -1 : 1)];
    if (next !== undefined) {
      this.select(next);
    }
  }
}
