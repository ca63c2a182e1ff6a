class Page {
  constructor(profile) {
    this.profile = profile;
    this.settings = {
      mode: 'program', grouping: 'merged', thread: -1, event: '0', direction: 'flame', comparison: 'relative',
      from: null, to: null,
    };
    if (profile.events[0]?.name === 'wall clock' && profile.groups.length > 1) {
      this.settings.grouping = 'groups';  // else threads that only wait hide the others
    }
    this.pattern = null;
    this.dark = matchMedia('(prefers-color-scheme: dark)').matches;
    this.panes = [];
    this.describe();
    this.heatMap = new HeatMap(this);
    this.hotTable = new HotTable(this);
    this.sourceView = new SourceView(this);
    this.connect();
    this.choose({});
  }

  describe() {
    const {profile} = this;
    document.title = `${profile.title} – flame graph`;
    element('title').textContent = profile.title;
    element('facts').textContent = profile.facts + (profile.compares ? ' · red: takes more than before; blue: less' : '');
    element('lead').textContent = profile.lead;
    element('lead').hidden = profile.lead === '';
    element('notes').hidden = profile.notes.length === 0;
    for (const note of profile.notes) {
      element('notes').querySelector('ul').append(Object.assign(document.createElement('li'), {textContent: note}));
    }
    const threads = element('thread');
    threads.append(new Option('All threads', '-1'));
    profile.groups.forEach(({count}, group) => {
      if (count > 1) {
        threads.append(new Option(profile.threadName(profile.threads.length + group), profile.threads.length + group));
      }
    });
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
    element('sources').hidden = profile.sources.length === 0;
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
    element('table').addEventListener('click', () => this.toggleSide('hot'));
    element('sources').addEventListener('click', () => this.toggleSide('source'));
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
    this.hotTable.build();
    this.sourceView.build();
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
      for (const text of [tree.amount(weight, tree.secondsBefore), profile.functions.name[id], profile.place(id, 0)]) {
        row.append(Object.assign(document.createElement('td'), {textContent: text}));
      }
      return row;
    }));
  }

  // Beside the graph: the table, the source, or nothing.
  toggleSide(id) {
    for (const [side, button] of [['hot', 'table'], ['source', 'sources']]) {
      element(side).hidden = side !== id || !element(side).hidden;
      element(button).setAttribute('aria-pressed', String(!element(side).hidden));
    }
    this.sourceView.build();
    this.sourceView.follow(this.focused.tree, this.focused.selected);
    this.draw();
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
    this.hotTable.list();
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
    this.sourceView.build();
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
      '1': () => this.choose({mode: 'program'}),
      '2': () => this.choose({mode: 'mixed'}),
      '3': () => this.choose({mode: 'python'}),
      '4': () => this.choose({mode: 'native'}),
      't': () => this.choose({grouping: {merged: 'groups', groups: 'threads', threads: 'merged'}[settings.grouping]}),
      'i': () => this.choose({direction: settings.direction === 'flame' ? 'icicle' : 'flame'}),
      'h': () => this.toggleSide('hot'),
      's': () => this.profile.sources.length > 0 && this.toggleSide('source'),
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
