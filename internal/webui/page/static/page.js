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
    const from = Number(chart.dataset.from), bars = chart.querySelector('.bars').viewBox.baseVal.width;
    const length = bars * chart.dataset.step, ticks = [...chart.querySelectorAll('.ticks text')];
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

  // The value of a bar is a share of the highest one, in the same unit.
  function readout(chart, bars, i) {
    const highest = /^([\d.]+)(.*)$/.exec(chart.querySelector('.highest').textContent);
    const heights = bars.dataset.heights || (bars.dataset.heights = JSON.stringify(Object.fromEntries(
      [...bars.querySelector('path').getAttribute('d').matchAll(/M(\d+) \d+v-([\d.e-]+)/g)].map(m => [m[1], Number(m[2])]))));
    const height = JSON.parse(heights)[i], time = clock(new Date(Number(chart.dataset.from) + i * chart.dataset.step));
    if (height === undefined || !highest) return `${time} no profiles`;
    return `${time} ${height <= 1 ? 'about 0' : (highest[1] * height / 28).toPrecision(3)}${highest[2]}`;
  }

  let drag = null;
  function barAt(bars, event) {
    const box = bars.getBoundingClientRect(), count = bars.viewBox.baseVal.width;
    return Math.max(0, Math.min(count - 1, Math.floor((event.clientX - box.left) / box.width * count)));
  }

  function shade(bars, first, last) {
    let rect = bars.querySelector('rect');
    if (!rect) {
      rect = bars.appendChild(document.createElementNS('http://www.w3.org/2000/svg', 'rect'));
      rect.setAttribute('height', '28');
    }
    rect.setAttribute('x', Math.min(first, last));
    rect.setAttribute('width', Math.abs(first - last) + 1);
  }

  function clear() {
    for (const e of document.querySelectorAll('.bars rect, .readout')) e.remove();
  }

  addEventListener('pointerdown', event => {
    const bars = event.target.closest && event.target.closest('.bars');
    if (!bars || event.button) return;
    event.preventDefault();
    drag = {bars, first: barAt(bars, event)};
    bars.setPointerCapture(event.pointerId);
  });
  addEventListener('pointermove', event => {
    const bars = drag ? drag.bars : event.target.closest && event.target.closest('.bars');
    if (!bars) { clear(); return; }
    const at = barAt(bars, event), chart = bars.parentElement, first = drag ? drag.first : at;
    if (!bars.querySelector('rect')) clear();
    shade(bars, first, at);
    const label = chart.querySelector('.readout') || chart.appendChild(Object.assign(document.createElement('span'), {className: 'readout'}));
    label.textContent = drag && first !== at ? short(...range(chart, first, at)) : readout(chart, bars, at);
  });
  addEventListener('pointerup', event => {
    if (!drag) return;
    const {bars, first} = drag, last = barAt(bars, event);
    drag = null;
    if (first === last) return;
    const [from, to] = range(bars.parentElement, first, last), query = new URLSearchParams(location.search);
    for (const key of ['page', 'base_from', 'base_to', 'refresh']) query.delete(key);
    query.set('from', from.toISOString());
    query.set('to', to.toISOString());
    location.search = query;
  });
  addEventListener('pointercancel', () => { drag = null; clear(); });

  function range(chart, first, last) {
    const from = Number(chart.dataset.from), step = Number(chart.dataset.step);
    return [new Date(from + Math.min(first, last) * step), new Date(Math.min(Number(chart.dataset.to), from + (Math.max(first, last) + 1) * step))];
  }

  // New content replaces the old one while nobody uses it.
  async function refresh(main) {
    if (document.hidden || drag || main.contains(document.activeElement)) return;
    const response = await fetch(location.href);
    if (!response.ok) return;
    const fresh = new DOMParser().parseFromString(await response.text(), 'text/html').querySelector('main');
    localize(fresh);
    main.replaceChildren(...fresh.childNodes);
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
