// The functions of a pane's graph, each with what takes it in all of its places.
class HotTable {
  constructor(page) {
    this.page = page;
    this.box = element('hot');
    this.sort = 'self';
  }

  // NODE: in which it takes most; -1: it only waits.
  static row(id, node) {
    return {id, node, self: 0, total: 0, python: 0, c: 0, kernel: 0, other: 0, wait: 0};
  }

  // By function of TREE.
  static rows(tree) {
    const rows = new Map();
    for (let node = 1; node < tree.function.length; ++node) {
      const id = tree.function[node];
      if (id < 0 || tree.kind(node) === 3) {
        continue;
      }
      let row = rows.get(id);
      if (row === undefined) {
        row = HotTable.row(id, node);
        rows.set(id, row);
      }
      row.self += tree.self[node];
      row.node = tree.total[node] > tree.total[row.node] ? node : row.node;
      let outer = tree.parent[node];
      while (outer > 0 && tree.function[outer] !== id) {
        outer = tree.parent[outer];
      }
      if (outer > 0) {
        continue;  // it calls itself: its time is in that of the outer one
      }
      row.total += tree.total[node];
      tree.profile.uses.forEach((use, index) => {
        row[['python', 'c', 'kernel'].includes(use) ? use : 'other'] += tree.uses[index][node];
      });
    }
    return rows;
  }

  build() {
    const {page} = this;
    const {profile, settings} = page;
    const [pane] = page.panes;
    const {tree} = pane;
    const rows = HotTable.rows(tree);
    const waits = profile.events.findIndex(event => event.unit === 'ns');
    if (tree.unit === 'samples' && waits >= 0) {
      this.waits = new Tree(profile, settings, waits);
      for (const [id, {total}] of HotTable.rows(this.waits)) {
        rows.set(id, {...rows.get(id) ?? HotTable.row(id, -1), wait: total});
      }
    }
    this.pane = pane;
    this.rows = [...rows.values()].filter(row => row.total > 0 || row.wait > 0);  // others: of the older recording
    const share = name => row => row[name] > 0 ? tree.share(row[name]).slice(0, -2) : '';
    const parts = tree.unit === 'samples' ? ['python', 'c', 'kernel', 'other'] : [];
    const words = {python: 'Python', c: 'C', kernel: 'Kernel', other: 'Other', wait: 'Wait s'};
    const titles = {
      self: 'in the function itself', total: 'with all that it calls', other: 'GC, import, Python or C, unknown',
      wait: 'how long its threads waited in it and in what it calls',
    };
    this.columns = [['self', 'Self %', share('self')], ['total', 'Total %', share('total')],
      ...parts.filter(part => this.rows.some(row => row[part] > 0)).map(part => [part, words[part], share(part)])];
    if (this.rows.some(row => row.wait > 0)) {
      this.columns.push(['wait', words.wait, row => row.wait > 0 ? (row.wait / 1e9).toFixed(2) : '']);
    }
    if (this.sort !== 'name' && !this.columns.some(([name]) => name === this.sort)) {
      this.sort = 'self';
    }
    const head = document.createElement('tr');
    for (const [name, word] of [...this.columns, ['name', 'Function']]) {
      const cell = Object.assign(document.createElement('th'), {className: name});
      if (name === this.sort) {
        cell.setAttribute('aria-sort', name === 'name' ? 'ascending' : 'descending');
      }
      const title = titles[name] ?? (name === 'name' ? 'by name' : `of the total: ${word}`);
      const button = Object.assign(document.createElement('button'), {textContent: word, title});
      button.addEventListener('click', () => {
        this.sort = name;
        this.build();
      });
      cell.append(button);
      head.append(cell);
    }
    this.box.querySelector('thead').replaceChildren(head);
    this.list();
  }

  list() {
    const most = 200;
    const {tree} = this.pane;
    const {pattern, profile} = this.page;
    const {rank} = profile;
    const nameOf = row => profile.functions.name[row.id];
    const shown = this.rows.filter(row => !pattern || pattern.test(nameOf(row)))
        .sort((a, b) => (this.sort === 'name' ? 0 : b[this.sort] - a[this.sort]) || rank[a.id] - rank[b.id]);
    this.box.querySelector('tbody').replaceChildren(...shown.slice(0, most).map(row => {
      const line = document.createElement('tr');
      for (const [name, , text] of this.columns) {
        line.append(Object.assign(document.createElement('td'), {className: name, textContent: text(row)}));
      }
      const label = row.node >= 0 ? tree.label(row.node) : nameOf(row);
      const button = Object.assign(document.createElement('button'), {textContent: label, title: profile.place(row.id, 0)});
      button.addEventListener('click', () => this.pane.zoom(Math.max(0, row.node)));
      const cell = document.createElement('td');
      cell.append(button);
      line.append(cell);
      return line;
    }));
    this.box.querySelector('p').textContent = shown.length > most ? `and ${shown.length - most} more: search for one`
        : shown.length === 0 ? 'no function' : '';
  }
}
