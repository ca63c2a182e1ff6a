const kCells = 50;     // of a second
const kStrip = 1000;   // as many cells at most are in one row
const kRuler = 14;     // pixels

// Samples by time, above a ruler: a row of cells, or, in long recordings, a column for each second, from top to bottom in time.
class HeatMap {
  constructor(page) {
    this.page = page;
    this.canvas = element('heatmap');
    this.first = null;
    const {cells} = page.profile;
    this.rows = cells <= kStrip ? 1 : kCells;
    this.columns = Math.ceil(cells / this.rows);
    element('heat').hidden = cells <= kCells;
    this.canvas.style.height = `${(this.rows === 1 ? 16 : 64) + kRuler}px`;
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
    this.heat = new Float64Array(this.columns * this.rows);
    const counts = events.filter(one => profile.events[one].unit !== 'ns');
    const counted = counts.length > 0 ? counts : events;
    for (let i = 0; i < cell.length; ++i) {
      if (!old[i] && counted.includes(event[i]) && profile.isOf(thread[i], wanted)) {
        this.heat[cell[i]] += weight[i];
      }
    }
    this.most = this.heat.reduce((most, one) => Math.max(most, one), 0);
  }

  draw() {
    if (element('heat').hidden) {
      return;
    }
    const scale = window.devicePixelRatio || 1;
    const {canvas, rows} = this;
    canvas.width = Math.round(canvas.clientWidth * scale);
    canvas.height = Math.round(canvas.clientHeight * scale);
    const context = canvas.getContext('2d');
    const [w, h] = [canvas.width / this.columns, (canvas.height - kRuler * scale) / rows];
    const {from, to} = this.page.settings;
    for (let index = 0; index < this.heat.length; ++index) {
      const outside = from !== null && (index < from || index >= to);
      context.fillStyle = this.colour(this.most > 0 ? this.heat[index] / this.most : 0, outside);
      const [x, y] = [Math.floor(Math.floor(index / rows) * w), Math.floor((index % rows) * h)];
      context.fillRect(x, y, Math.ceil(w) - (w > 6 ? 1 : 0), Math.ceil(h));
    }
    this.rule(context, scale);
    this.explain();
  }

  colour(strength, outside = false) {
    const light = this.page.dark ? 12 + 48 * strength : 97 - 50 * strength;
    return `hsl(${outside ? 0 : 12} ${outside ? 0 : 85}% ${light}%)`;
  }

  rule(context, scale) {
    const {canvas, columns, rows, page} = this;
    const length = columns * rows * page.profile.cell;
    const place = 60 * scale;  // of a text
    const least = length * place / canvas.width;
    const unit = [1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600].find(step => step >= least) ?? Math.ceil(least / 3600) * 3600;
    context.font = `${11 * scale}px system-ui, sans-serif`;
    context.textBaseline = 'bottom';
    context.fillStyle = getComputedStyle(canvas).color;
    for (let second = 0; second <= length; second += unit) {
      const x = Math.round(second / length * canvas.width);
      context.fillRect(Math.min(x, canvas.width - 1), canvas.height - kRuler * scale, 1, 4 * scale);
      context.textAlign = x + place > canvas.width ? 'right' : 'left';
      context.fillText(`${second} s`, x + (x + place > canvas.width ? -3 : 3) * scale, canvas.height);
    }
  }

  unit() {
    return this.page.panes.every(pane => pane.tree.unit === 'ns') ? ' waited' : '';
  }

  // What the colours are.
  explain() {
    const {page, most, rows} = this;
    const cell = `${Math.round(page.profile.cell * 1000)} ms`;
    element('legend').style.setProperty('--least', this.colour(0));
    element('legend').style.setProperty('--most', this.colour(1));
    element('legend').lastElementChild.textContent = `${page.panes[0].tree.amount(most)}${this.unit()} in ${cell}` +
        (rows === 1 ? '' : '; a column is a second, from top to bottom');
  }

  at(mouse) {
    const box = this.canvas.getBoundingClientRect();
    const limit = (value, most) => Math.max(0, Math.min(most - 1, Math.floor(value)));
    const column = limit((mouse.clientX - box.left) / box.width * this.columns, this.columns);
    return column * this.rows + limit((mouse.clientY - box.top) / (box.height - kRuler) * this.rows, this.rows);
  }

  choose(mouse) {
    if (this.first === null) {
      return;
    }
    const [first, last] = [this.first, this.at(mouse)].sort((a, b) => a - b);
    this.first = null;
    const second = Math.floor(first / kCells);
    if (first === last) {
      this.page.select(second * kCells, (second + 1) * kCells);
    } else {
      this.page.select(first, last + 1);
    }
  }

  step(pressed) {
    const {from} = this.page.settings;
    const step = {ArrowLeft: -1, ArrowRight: 1}[pressed.key];
    if (step !== undefined) {
      const second = from === null ? 0 : Math.floor(from / kCells) + step;
      const next = Math.max(0, Math.min(Math.ceil(this.page.profile.cells / kCells) - 1, second));
      this.page.select(next * kCells, (next + 1) * kCells);
      pressed.stopPropagation();
      pressed.preventDefault();
    }
  }

  hover(mouse) {
    const cell = this.at(mouse);
    const seconds = cell * this.page.profile.cell;
    this.page.point(null, -1, mouse, `${seconds.toFixed(2)} s: ${this.page.panes[0].tree.amount(this.heat[cell])}${this.unit()}`);
  }
}
