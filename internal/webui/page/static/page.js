// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Makes the pages more convenient: times in the zone of the browser, choices without a button, ranges by drag over a
// chart, and new profiles without a reload. All of it works on what the server has written, and text stays text.
'use strict';
(() => {
  const two = n => String(n).padStart(2, '0');
  const clock = t => `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
  const dated = t => `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${clock(t)}`;
  const zone = new Intl.DateTimeFormat('en', {timeZoneName: 'short'}).formatToParts().find(p => p.type === 'timeZoneName').value;
  const today = (from, to) => from.toDateString() === new Date().toDateString() && from.toDateString() === to.toDateString();
  const short = (from, to) => today(from, to) ? `${clock(from)} to ${clock(to)}` : span(from, to);
  const span = (from, to) => `${dated(from)} to ${from.toDateString() === to.toDateString() ? clock(to) : dated(to)}`;

  function localize(root) {
    for (const e of root.querySelectorAll('time[datetime]')) {
      e.title = e.dateTime;
      e.textContent = dated(new Date(e.dateTime));
    }
    for (const e of root.querySelectorAll('.zone')) e.textContent = zone;
    for (const e of root.querySelectorAll('option[data-from]')) e.textContent = short(new Date(e.dataset.from), new Date(e.dataset.to));
    for (const chart of root.querySelectorAll('.chart')) moveTicks(chart);
  }

  // Hours and days of the server's ticks are those of UTC: they move to those of the zone.
  function moveTicks(chart) {
    const from = Number(chart.dataset.from), length = chart.dataset.to - from, ticks = [...chart.querySelectorAll('.ticks text')];
    const step = ticks.length > 1 ? ticks[1].dataset.time - ticks[0].dataset.time : 0;
    for (const tick of ticks) {
      const utc = new Date(Number(tick.dataset.time));
      const time = step >= 3600e3 ? new Date(utc.getTime() + utc.getTimezoneOffset() * 60e3 % step) : utc;
      const at = 100 * (time - from) / length;
      if (at < 0 || at > 100) { tick.remove(); continue; }
      tick.setAttribute('x', `${at}%`);
      if (step >= 86400e3) tick.textContent = time.toLocaleDateString('en', {month: 'short', day: 'numeric'});
      else tick.textContent = clock(time).slice(0, /:\d+:/.test(tick.textContent) ? 8 : 5);
    }
  }

  // A choice with the mouse shows the page. With the keyboard the button does: each arrow key is a choice.
  let byKeyboard = false;
  addEventListener('keydown', () => { byKeyboard = true; }, true);
  addEventListener('pointerdown', () => { byKeyboard = false; }, true);
  addEventListener('change', event => {
    if (!byKeyboard && event.target.matches('.bar select')) event.target.form.requestSubmit();
  });

  // ---- Charts

  // A slot is a number, counted from the first one. The first and the last may be in the range in part.
  const slotCount = chart => Math.ceil((chart.dataset.to - chart.dataset.first) / chart.dataset.step);
  function slotAt(chart, event) {
    const box = chart.querySelector('.plot').getBoundingClientRect(), {from, to, first, step} = chart.dataset;
    const time = Number(from) + (event.clientX - box.left) / box.width * (to - from);
    return Math.max(0, Math.min(slotCount(chart) - 1, Math.floor((time - first) / step)));
  }

  function rangeOf(chart, a, b) {
    const {from, to, first, step} = chart.dataset;
    const start = Math.max(Number(from), Number(first) + Math.min(a, b) * step), end = Math.min(Number(to), Number(first) + (Math.max(a, b) + 1) * step);
    return [new Date(start), new Date(end)];
  }

  // mark shades slots and says what is in them.
  function mark(chart, a, b) {
    const plot = chart.querySelector('.plot'), {from, to} = chart.dataset, [start, end] = rangeOf(chart, a, b), place = t => 1000 * (t - from) / (to - from);
    const rect = plot.querySelector('rect') || plot.appendChild(document.createElementNS('http://www.w3.org/2000/svg', 'rect'));
    for (const [key, value] of Object.entries({x: place(start), width: Math.max(1, place(end) - place(start)), y: 0, height: 100})) rect.setAttribute(key, value);
    const label = chart.querySelector('.readout') || chart.appendChild(Object.assign(document.createElement('div'), {className: 'readout'}));
    if (chart.matches('.main')) label.setAttribute('role', 'status');
    const lines = [short(start, end)], texts = chart.querySelector('.texts');
    if (a === b && texts) {
      for (const {name, values} of JSON.parse(texts.textContent)) if (values[a]) lines.push(`${name}: ${values[a]}`);
      if (lines.length === 1) lines.push('no profiles');
    }
    label.replaceChildren(...lines.map(text => Object.assign(document.createElement('div'), {textContent: text})));
  }

  function clear() {
    for (const e of document.querySelectorAll('.plot rect, .readout')) e.remove();
  }

  // open shows what is in slots.
  function open(chart, a, b) {
    const [from, to] = rangeOf(chart, a, b), query = new URLSearchParams(chart.dataset.query);
    query.set('from', from.toISOString());
    query.set('to', to.toISOString());
    location.href = `/?${query}${location.hash}`;
  }

  const chartOf = event => {
    const plot = event.target.closest && event.target.closest('.plot');
    return plot && plot.closest('.chart');
  };
  let drag = null; // over slots of a chart
  let cursor = null; // that the keyboard moves
  addEventListener('pointerdown', event => {
    const chart = chartOf(event);
    if (!chart || event.button) return;
    event.preventDefault();
    drag = {chart, first: slotAt(chart, event)};
    chart.setPointerCapture(event.pointerId);
  });
  addEventListener('pointermove', event => {
    const chart = drag ? drag.chart : chartOf(event);
    if (!chart) {
      if (!cursor) clear();
      return;
    }
    clear();
    const at = slotAt(chart, event);
    mark(chart, drag ? drag.first : at, at);
  });
  addEventListener('pointerup', event => {
    if (!drag) return;
    const {chart, first} = drag;
    drag = null;
    open(chart, first, slotAt(chart, event));
  });
  addEventListener('pointercancel', () => { drag = null; clear(); });
  addEventListener('keydown', event => {
    const chart = event.target;
    if (!chart.matches || !chart.matches('.chart.main') || event.ctrlKey || event.altKey || event.metaKey) return;
    if (!cursor || cursor.chart !== chart) cursor = {chart, first: slotCount(chart) - 1, last: slotCount(chart) - 1};
    else if (event.key === 'ArrowLeft') cursor.last = Math.max(0, cursor.last - 1);
    else if (event.key === 'ArrowRight') cursor.last = Math.min(slotCount(chart) - 1, cursor.last + 1);
    if (event.key === 'Escape') {
      cursor = null;
      clear();
    } else if (event.key === 'Enter') {
      open(chart, cursor.first, cursor.last);
    } else if (/^Arrow(Left|Right)$/.test(event.key)) {
      if (!event.shiftKey) cursor.first = cursor.last;
      mark(chart, cursor.first, cursor.last);
    } else {
      return;
    }
    event.preventDefault();
  });
  addEventListener('focusout', event => {
    if (cursor && event.target === cursor.chart) { cursor = null; clear(); }
  });

  // ---- Form

  // What is chosen in the flame graph stays when other profiles are shown.
  addEventListener('click', event => {
    const link = event.target.closest && event.target.closest('a[href]');
    if (link && link.pathname === location.pathname && !link.hash && link.origin === location.origin) link.hash = location.hash;
  });
  addEventListener('submit', event => {
    const form = event.target;
    if (!form.matches('.bar')) return;
    form.action = '/select' + location.hash;
    // Times are those of the zone here, and those of UTC in the address. If one end is changed, both count.
    for (const field of form.querySelectorAll('fieldset')) {
      const pickers = [...field.querySelectorAll('input[type=datetime-local]')], isChanged = pickers.some(at => at.dataset.changed);
      for (const at of pickers) {
        const name = at.name.replace(/_at$/, '');
        at.disabled = true;
        if (isChanged && at.value) form.append(Object.assign(document.createElement('input'), {type: 'hidden', name, value: new Date(at.value).toISOString()}));
      }
    }
  });
  // A page that the browser has kept has the form as it was sent.
  addEventListener('pageshow', event => { if (event.persisted) location.reload(); });
  addEventListener('input', event => {
    if (event.target.matches('input[type=datetime-local]')) event.target.dataset.changed = 'yes';
  });
  // The pickers begin with the range that is shown.
  addEventListener('toggle', event => {
    if (!event.target.matches('.times')) return;
    const field = event.target.querySelector('fieldset'), local = text => {
      const t = new Date(text);
      return new Date(t.getTime() - t.getTimezoneOffset() * 60e3).toISOString().slice(0, 19);
    };
    for (const [name, text] of [['from', field.dataset.from], ['to', field.dataset.to]]) {
      const at = [...field.querySelectorAll('input[type=datetime-local]')].find(e => e.name.startsWith(name));
      if (!at.value) at.value = local(text);
    }
  }, true);

  // New content replaces the old one while nobody uses it.
  async function refresh(main) {
    const head = main.querySelector('#head') || main;
    if (document.hidden || drag || cursor || head.contains(document.activeElement)) return;
    const response = await fetch(location.href);
    if (!response.ok) return;
    const fresh = new DOMParser().parseFromString(await response.text(), 'text/html'), data = fresh.getElementById('data');
    localize(fresh);
    if (head !== main && (!data || !document.getElementById('data'))) {
      location.reload();
      return;
    }
    head.replaceChildren(...(fresh.querySelector('#head') || fresh.querySelector('main')).childNodes);
    if (data) {
      document.getElementById('data').textContent = data.textContent;
      document.dispatchEvent(new Event('newdata'));
    }
  }

  function start() {
    for (const e of document.querySelectorAll('.scripted')) e.hidden = false;
    localize(document);
    const main = document.querySelector('main[data-refresh]');
    const units = {s: 1e3, m: 60e3}, every = main && /^(\d+)([sm])$/.exec(main.dataset.refresh);
    if (every) setInterval(() => refresh(main).catch(() => {}), every[1] * units[every[2]]);
  }
  if (document.readyState === 'loading') addEventListener('DOMContentLoaded', start);
  else start();
})();
